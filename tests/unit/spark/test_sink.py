"""The sink without Spark: tasks and the driver's part, against a broker in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.sink import writers
from ottla.spark.sink.columns import HEADERS, Columns, records_of
from ottla.spark.sink.exactly_once import Task
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.record_writer import Records, _rounds
from ottla.spark.sink.writers import StreamWriter
from tests.unit.spark.sinks import VALUE_ONLY

# --- columns and options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "sentence"),
    [
        ({"key": "string"}, "column value: it is required"),
        ({"value": "int"}, "column value: its type is int, and has to be string or binary"),
        ({"value": "string", "offset": "bigint"}, "column offset: a record has none"),
        ({"value": "string", "partition": "bigint"}, "column partition: its type is bigint, and has to be int"),
        ({"value": "string", "headers": HEADERS}, "column headers: it is written with includeHeaders=true only"),
    ],
)
def test_columns_that_cannot_be_written(types: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        Columns.of(types, has_topic_option=True, include_headers=False)
    assert str(caught.value).startswith(sentence)


def test_a_topic_has_to_come_from_somewhere() -> None:
    with pytest.raises(OttlaSparkError, match="option topic: give it, or let the query have a column topic"):
        Columns.of({"value": "string"}, has_topic_option=False, include_headers=False)
    assert Columns.of({"value": "string", "topic": "string"}, has_topic_option=False, include_headers=False).topic


def test_rows_become_records() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array(["v", None], pa.string()),
            "key": pa.array([b"k", None], pa.binary()),
            "topic": pa.array(["a", "b"]),
            "partition": pa.array([3, None], pa.int32()),
            "headers": pa.array(
                [[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    columns = Columns(key=True, topic=True, partition=True, headers=True)
    first, second = records_of(batch, columns, "")
    assert first[:5] == ("a", b"v", b"k", [("h", b"x"), ("h", None)], 3)
    assert second[:5] == ("b", None, None, [], None)
    assert [record.topic for record in records_of(batch, columns, "other")] == ["other", "other"]


def test_a_row_without_a_topic() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["v"], "topic": pa.array([None], pa.string())})
    with pytest.raises(OttlaSparkError, match="column topic: a row has none"):
        list(records_of(batch, VALUE_ONLY._replace(topic=True), ""))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.acks": "2"}, "option kafka.acks: '2' is none of all, -1, 1, 0"),
        ({"kafka.acks": "1", "exactlyOnce": "true"}, "option kafka.acks: exactlyOnce needs all"),
        ({"kafka.compression.type": "rar"}, "option kafka.compression.type: 'rar' is none of"),
        ({"writeId": "w"}, "option writeId: it is for exactlyOnce=true"),
        ({"kafka.key.serializer": "x"}, "option kafka.key.serializer: cast the key"),
        ({"exactlyonce.onahed": "skip"}, "unknown option exactlyonce.onahed: did you mean exactlyOnce.onAhead?"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        read_options(SinkOptions, {"kafka.bootstrap.servers": "h:1", **options})
    assert str(caught.value).startswith(sentence)


def test_batches_and_streams_are_known_by_different_names() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "exactlyOnce": "true"}
    with pytest.raises(OttlaSparkError, match="option exactlyOnce: a batch query needs writeId"):
        read_options(SinkOptions, given).for_batch()
    with pytest.raises(OttlaSparkError, match="option writeId: it is for batch queries"):
        read_options(SinkOptions, {**given, "writeId": "w"}).for_stream()


# --- writing ----------------------------------------------------------------------------------------------------------


def test_bytes_bound_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.spark.sink.record_writer.ROUND_BYTES", 10)
    batch = pa.RecordBatch.from_pydict({"value": ["x" * 6] * 5})
    sizes = [len(some) for some in _rounds(iter(Records([batch], VALUE_ONLY, "t")))]
    assert sizes == [2, 2, 1]


def test_digests_tell_rows_apart() -> None:
    def digest(values: Any) -> Any:
        return Records([pa.RecordBatch.from_pydict({"value": values})], VALUE_ONLY, "t").read_on()

    assert digest(["a", "b"]) == digest(["a", "b"])
    assert digest(["a", "b"]) != digest(["b", "a"])
    assert digest(["a"]).rows == 1


# --- what Spark tells its tasks ---------------------------------------------------------------------------------------


class FakeContext:
    """A task of Spark's, by its properties."""

    def __init__(self, **properties: str) -> None:
        self._properties = {name.replace("_", "."): value for name, value in properties.items()}

    def getLocalProperty(self, key: str) -> str | None:
        return self._properties.get(key)

    def partitionId(self) -> int:
        return 2


def exact_task(monkeypatch: pytest.MonkeyPatch, context: FakeContext, **options: str) -> Task:
    monkeypatch.setattr(writers, "_task_context", lambda: context)
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t", "exactlyOnce": "true", **options}
    return StreamWriter(read_options(SinkOptions, given), VALUE_ONLY)._exact_task()


IN_QUERY = {"sql_streaming_queryId": "q", "streaming_sql_batchId": "7"}


def test_a_task_knows_its_query_and_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exact_task(monkeypatch, FakeContext(**IN_QUERY)) == Task("q", 7, 2)


def test_a_task_without_a_query_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OttlaSparkError, match="Spark does not tell its tasks which query and batch they are in"):
        exact_task(monkeypatch, FakeContext(sql_streaming_queryId="q"))


def test_speculation_is_refused_unless_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FakeContext(**IN_QUERY, spark_speculation="true")
    with pytest.raises(OttlaSparkError, match=r"option exactlyOnce: spark\.speculation is on"):
        exact_task(monkeypatch, context)
    assert exact_task(monkeypatch, context, allowSpeculation="true") == Task("q", 7, 2)
    assert exact_task(monkeypatch, FakeContext(**IN_QUERY, spark_speculation="false")) == Task("q", 7, 2)
