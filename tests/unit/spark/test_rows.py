"""Rows of Spark's columns: values, clipping to a range of offsets, and where a batch is closed."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from ottla.spark.rows import RowMaker
from ottla.spark.schemas import RecordColumns, arrow_schema
from ottla.wire.batch import Record, build_batch
from ottla.wire.columns import Columns, decode_columns

ALL = RecordColumns(headers=True, leader_epoch=True, topic_id=True)


def records(count: int, *, value_bytes: int = 3) -> Columns:
    return decode_columns(build_batch([Record(100 + i, i, b"k", b"v" * value_bytes) for i in range(count)]))


def rows(maker: RowMaker, columns: Columns, first: int = 0, until: int = 1 << 40) -> list[dict[str, Any]]:
    return [row for batch in maker.batches(columns, first, until) for row in batch.to_pylist()]


def test_a_row_has_sparks_columns():
    columns = decode_columns(build_batch([Record(7, 1500, None, b"", (("a", None), ("a", b"1")))]))
    batch = next(RowMaker("orders", 3, ALL, "AAAAAAAAAAAAAAAAAAAAAQ").batches(columns, 0, 8))
    assert batch.schema == arrow_schema(ALL.types())
    assert batch.to_pylist() == [
        {
            "key": None,
            "value": b"",
            "topic": "orders",
            "partition": 3,
            "offset": 7,
            "timestamp": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
            "timestampType": 0,
            "headers": [{"key": "a", "value": None}, {"key": "a", "value": b"1"}],
            "leaderEpoch": -1,
            "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
        }
    ]


def test_a_record_without_timestamp_or_headers():
    columns = decode_columns(build_batch([Record(0, -1, b"k", None)]))
    (row,) = rows(RowMaker("t", 0, ALL), columns)
    assert row["timestamp"] == datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
    assert row["headers"] is None
    assert row["value"] is None


def test_timestamp_types_follow_the_batches():
    appended = build_batch([Record(1, 5, b"k", b"v")], log_append_time=77)
    columns = decode_columns(build_batch([Record(0, 5, b"k", b"v")]) + appended)
    found = rows(RowMaker("t", 0), columns)
    assert [row["timestampType"] for row in found] == [0, 1]
    assert found[1]["timestamp"] == datetime(1970, 1, 1, 0, 0, 0, 77_000, UTC)


@pytest.mark.parametrize(
    ("first", "until", "expected"),
    [(0, 1000, [100, 101, 102, 103]), (102, 1000, [102, 103]), (0, 102, [100, 101]), (101, 102, [101]), (104, 200, [])],
)
def test_rows_outside_the_range_are_left_out(first: int, until: int, expected: list[int]):
    assert [row["offset"] for row in rows(RowMaker("t", 0), records(4), first, until)] == expected


def test_a_batch_is_closed_at_its_rows():
    maker = RowMaker("t", 0, batch_rows=4)
    assert [batch.num_rows for batch in maker.batches(records(10), 0, 1000)] == [4, 4, 2]


def test_a_batch_is_closed_at_its_bytes_and_a_large_record_has_its_own():
    maker = RowMaker("t", 0, batch_bytes=25)
    assert [batch.num_rows for batch in maker.batches(records(5, value_bytes=11), 0, 1000)] == [2, 2, 1]
    assert [batch.num_rows for batch in maker.batches(records(3, value_bytes=100), 0, 1000)] == [1, 1, 1]


def test_columns_of_one_value_shrink_and_grow_with_the_batches():
    maker = RowMaker("t", 5)
    for count in (3, 1, 6):
        (batch,) = maker.batches(records(count), 0, 1000)
        batch.validate(full=True)
        assert batch.column("topic").to_pylist() == ["t"] * count
        assert batch.column("partition").type == pa.int32()
        assert batch.column("partition").to_pylist() == [5] * count
