"""The format as Spark sees it, without a JVM."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType, _parse_datatype_json_string

from ottla.spark.errors import OttlaSparkError
from ottla.spark.formats import FORMATS, format_class
from ottla.spark.schemas import RecordColumns, arrow_schema
from ottla.spark.topic.source import TopicDataSource
from tests.unit.spark.fake_cluster import SERVERS

SOURCES = Path(__file__).parents[3] / "src"
SCHEMA = StructType()
SPARKS_SCHEMA = """{"type":"struct","fields":[
 {"name":"key","type":"binary","nullable":true,"metadata":{}},
 {"name":"value","type":"binary","nullable":true,"metadata":{}},
 {"name":"topic","type":"string","nullable":true,"metadata":{}},
 {"name":"partition","type":"integer","nullable":true,"metadata":{}},
 {"name":"offset","type":"long","nullable":true,"metadata":{}},
 {"name":"timestamp","type":"timestamp","nullable":true,"metadata":{}},
 {"name":"timestampType","type":"integer","nullable":true,"metadata":{}},
 {"name":"headers","type":{"type":"array","elementType":{"type":"struct","fields":[
   {"name":"key","type":"string","nullable":true,"metadata":{}},
   {"name":"value","type":"binary","nullable":true,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}}
]}"""
"""What Spark's own source says with includeHeaders."""


def source(**options: str) -> TopicDataSource:
    return TopicDataSource(CaseInsensitiveDict({**SERVERS, "subscribe": "t", **options}))


def test_columns_are_those_of_sparks_own_source():
    assert source().schema() == (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, `timestamp` timestamp, "
        "`timestampType` int"
    )
    more = source(includeHeaders="true", includeLeaderEpoch="true", includeTopicId="true").schema()
    assert more.endswith("`headers` array<struct<key: string, value: binary>>, `leaderEpoch` int, `topicId` string")


def test_arrow_batches_have_the_schema_that_spark_expects():
    spark_schema = _parse_datatype_json_string(SPARKS_SCHEMA)
    assert isinstance(spark_schema, StructType)
    assert arrow_schema(RecordColumns(headers=True).types()).equals(to_arrow_schema(spark_schema, timezone="UTC"))


def test_filters_are_taken_unless_told_otherwise():
    taking, plain = source().reader(SCHEMA), source(pushdown="false").reader(SCHEMA)
    assert type(taking).pushFilters is not DataSourceReader.pushFilters
    assert type(plain).pushFilters is DataSourceReader.pushFilters, "Spark refuses readers that have their own"


def test_bad_options_are_found_while_planning():
    for make in (source(minPartitions="0").reader, source(endingOffsets="latest").streamReader):
        with pytest.raises(OttlaSparkError, match=r"^option "):
            make(SCHEMA)


def test_nothing_connects_before_it_is_asked():
    reader = source().streamReader(SCHEMA)
    assert isinstance(reader, SupportsTriggerAvailableNow)
    again = pickle.loads(pickle.dumps(reader))
    assert again.getDefaultReadLimit() == ReadAllAvailable()
    assert source(maxOffsetsPerTrigger="7").streamReader(SCHEMA).getDefaultReadLimit() == ReadMaxRows(7)


def test_an_empty_plan_has_no_rows():
    for reader in (source().reader(SCHEMA), source().streamReader(SCHEMA)):
        assert list(reader.read(InputPartition(None))) == []


def test_secrets_are_in_no_text():
    secret = {"kafka.sasl.password": "pencil", "kafka.sasl.username": "alice", "kafka.sasl.mechanism": "PLAIN"}
    reader = source(**secret, **{"kafka.security.protocol": "SASL_PLAINTEXT"}).reader(SCHEMA)
    assert "pencil" not in repr(vars(reader))


@pytest.mark.parametrize("name", FORMATS)
def test_spark_finds_every_format_by_itself(name: str):
    module = f"pyspark_{name.replace('-', '_')}"
    assert (SOURCES / f"{module}.py").is_file()
    found: Any = __import__(module).DefaultSource
    assert found is format_class(name)
    assert found.name() == name
