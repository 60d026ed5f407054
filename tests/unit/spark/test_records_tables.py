"""Tables of record types: their columns, and every golden record through its table and back."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ottla import wire
from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.decode import RecordDecoder, Source
from ottla.spark.records.json_rows import JsonDecoder
from ottla.spark.records.states import NAMES
from ottla.spark.records.tables import COMMON, Table, find_table, tables
from ottla.spark.records.types import arrow_schema, ddl
from ottla.spark.records.values import ValueRules
from ottla.wire.batch import Record, build_batch
from ottla.wire.columns import decode_columns
from ottla.wire.compile import message_shape
from ottla.wire.schemas import message_schema
from ottla.wire.shape import Struct, Type
from ottla.wire.text import Field, Message

GOLDEN = Path(__file__).parents[2] / "golden"
ALL = ValueRules(defaults=True, secrets=True)
OPEN = 1 << 60


# --- columns ----------------------------------------------------------------------------------------------------------


def test_every_record_type_has_a_table_whose_columns_have_different_names():
    assert len(tables()) == 60
    for table in tables().values():
        names = Counter(column.name.lower() for column in table.columns)
        assert max(names.values()) == 1, table.name
        assert table.columns[: len(COMMON)] == COMMON
        assert len(arrow_schema(table.columns)) == len(table.columns)


def test_a_table_in_sparks_words():
    assert ddl(find_table("ShareUpdate").columns[7:]) == (
        "`GroupId` string, `TopicId` string, `Partition` int, `SnapshotEpoch` int, `LeaderEpoch` int, "
        "`StartOffset` bigint, `DeliveryCompleteCount` int, "
        "`StateBatches` array<struct<`FirstOffset`: bigint, `LastOffset`: bigint, "
        "`DeliveryState`: int, `DeliveryStateName`: string, `DeliveryCount`: int>>"
    )


@pytest.mark.parametrize("name", ["PartitionRecord", "partition", "Partition", "PARTITIONRECORD"])
def test_tables_are_found_by_kafkas_names(name: str):
    assert find_table(name).name == "PartitionRecord"


def test_an_unknown_table_is_an_error_with_the_nearest_one():
    with pytest.raises(OttlaSparkError) as error:
        find_table("OffsetComit")
    assert str(error.value) == "option record: there is no record type OffsetComit: did you mean OffsetCommit?"


def test_names_of_states_are_those_of_fields_that_exist():
    for message, field in NAMES:
        schema = message_schema(message)
        assert field in {each.name for each in all_fields(schema, schema.fields)}, (message, field)


def all_fields(schema: Message, fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from all_fields(schema, schema.struct_fields(field.type) or ())


# --- golden records ---------------------------------------------------------------------------------------------------


@cache
def golden() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "wire" / "records.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@cache
def golden_keys() -> dict[tuple[str, str], bytes]:
    """By message and case."""
    keys = [case for case in golden() if case["kind"] == "coordinator-key"]
    return {(case["name"], case["case"]): bytes.fromhex(case["framedHex"]) for case in keys}


def cases() -> list[Any]:
    kinds = ("metadata", "coordinator-value")
    found = [(case["name"].removesuffix("Value"), case) for case in golden() if case["kind"] in kinds]
    return [pytest.param(name, case, id=f"{name}-v{case['version']}-{case['case']}") for name, case in found]


def chunk_of(table: Table, case: dict[str, Any]) -> bytes:
    key = None if table.key is None else golden_keys()[table.key, case["case"]]
    return build_batch([Record(100, 1000, key, bytes.fromhex(case["framedHex"]))])


@pytest.mark.parametrize(("name", "case"), cases())
def test_every_golden_record_decodes_to_its_table_and_back(name: str, case: dict[str, Any]):
    table = tables()[name]
    columns = decode_columns(chunk_of(table, case))
    (found,) = RecordDecoder(table, ALL, 1000).batches(Source(table.topic, 3), columns, 0, OPEN)
    (row,) = found.rows.to_pylist()
    assert (row["_topic"], row["_partition"], row["_offset"]) == (table.topic, 3, 100)
    assert (row["_record"], row["_version"], row["_tombstone"]) == (name, case["version"], False)
    # Neither JSON nor a table has a place for tags that this codec does not know.
    known = wire.from_json(table.value, case["version"], case["json"])
    assert back(table.value, case["version"], row) == wire.encode(known, case["version"])
    if table.key is not None:
        assert found.keys == [table.record_types[0].to_bytes(2, "big") + back(table.key, 0, row)]


def back(name: str, version: int, row: dict[str, Any]) -> bytes:
    """The bytes of a message from a row of its table."""
    return wire.encode(wire.from_json(name, version, as_json(message_shape(name, version), row)), version)


def as_json(shape: Struct, row: dict[str, Any]) -> dict[str, Any]:
    members = (*shape.plain, *shape.tagged)
    return {member.json_name: value_as_json(member.type, row[member.name]) for member in members}


def value_as_json(kind: Type, value: Any) -> Any:
    if value is None:
        return None
    if kind.kind == "struct":
        assert kind.struct is not None
        return as_json(kind.struct, value)
    if kind.kind == "array":
        assert kind.element is not None
        return [value_as_json(kind.element, each) for each in value]
    return base64.b64encode(value).decode() if kind.kind == "bytes" else value


def test_every_golden_record_as_json():
    decoder = JsonDecoder(ALL, 1000)
    for parameter in cases():
        name, case = parameter.values
        table = tables()[name]
        (found,) = decoder.batches(Source(table.topic, 0), decode_columns(chunk_of(table, case)), 0, OPEN)
        (row,) = found.rows.to_pylist()
        assert row["_record"] == name
        assert json.loads(row["value"]) == case["json"]
        assert (row["key"] is None) == (table.key is None)
