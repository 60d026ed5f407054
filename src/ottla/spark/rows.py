"""Turns columns of `ottla.wire.columns` into Arrow batches with the columns of Spark's `kafka` source.

A batch ends at a number of rows or of bytes of keys and values, whichever comes first. Columns with one value (topic,
partition) are made once and sliced to the length of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from ottla.spark.schemas import RecordColumns, arrow_numbers, arrow_repeated, arrow_schema

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Int64s

__all__ = ["DEFAULT_BATCH_BYTES", "DEFAULT_BATCH_ROWS", "RowMaker"]

DEFAULT_BATCH_ROWS: Final = 50_000
DEFAULT_BATCH_BYTES: Final = 8 << 20
USUAL_COLUMNS: Final = RecordColumns()
_NO_TIMESTAMP_TYPE: Final = -1
_MICROSECONDS: Final = 1000


@dataclass
class RowMaker:
    """Makes the rows of one partition."""

    topic: str
    partition: int
    columns: RecordColumns = USUAL_COLUMNS
    topic_id: str | None = None
    """In Kafka's text form; only for the column `topic_id`."""
    batch_rows: int = DEFAULT_BATCH_ROWS
    batch_bytes: int = DEFAULT_BATCH_BYTES
    """The bytes of keys and values in a batch."""

    def __post_init__(self) -> None:
        self._schema = arrow_schema(self.columns.types())
        self._same: dict[str, pa.Array] = {}

    def batches(self, columns: Columns, from_offset: int, until_offset: int) -> Iterator[pa.RecordBatch]:
        """The rows whose offset is at or past `from_offset` and below `until_offset`, as Arrow batches."""
        first, end = _clip(columns.offset, from_offset, until_offset)
        if first == end:
            return
        for start, stop in self._cuts(columns, first, end):
            yield self._batch(columns if stop - start == len(columns) else columns.rows(start, stop))

    def _cuts(self, columns: Columns, first: int, end: int) -> Iterator[tuple[int, int]]:
        sizes = np.maximum(columns.key_length[first:end], 0).astype(np.int64)
        sizes += np.maximum(columns.value_length[first:end], 0)
        if end - first <= self.batch_rows and int(sizes.sum()) <= self.batch_bytes:
            yield first, end
            return
        ends = np.cumsum(sizes)
        start = 0
        while start < len(ends):
            limit = self.batch_bytes + (int(ends[start - 1]) if start else 0)
            stop = min(int(np.searchsorted(ends, limit, side="right")), start + self.batch_rows)
            stop = max(stop, start + 1)  # a batch has at least one record of any size
            yield first + start, first + stop
            start = stop

    def _batch(self, columns: Columns) -> pa.RecordBatch:
        count = len(columns)
        arrays = [
            columns.keys(),
            columns.values(),
            self._repeated("topic", self.topic, pa.string(), count),
            self._repeated("partition", self.partition, pa.int32(), count),
            arrow_numbers(columns.offset, pa.int64()),
            arrow_numbers(columns.timestamp * _MICROSECONDS, pa.timestamp("us", tz="UTC")),
            self._timestamp_types(columns),
        ]
        if self.columns.headers:
            arrays.append(columns.header_lists(empty_as_null=True).cast(self._schema.field("headers").type))
        if self.columns.leader_epoch:
            epochs = columns.batches.field("partition_leader_epoch").astype(np.int32)
            arrays.append(arrow_numbers(epochs[columns.batch_index], pa.int32()))
        if self.columns.topic_id:
            arrays.append(self._repeated("topic_id", self.topic_id, pa.string(), count))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _timestamp_types(self, columns: Columns) -> pa.Array:
        batches = columns.batches
        types = np.where(batches.field("magic") == 0, _NO_TIMESTAMP_TYPE, batches.has_append_time).astype(np.int32)
        used = types[np.diff(batches.record_start) > 0]
        if (used == used[0]).all():
            return self._repeated(f"type {used[0]}", int(used[0]), pa.int32(), len(columns))
        return arrow_numbers(types[columns.batch_index], pa.int32())

    def _repeated(self, name: str, value: str | int | None, arrow_type: pa.DataType, count: int) -> pa.Array:
        """One value for so many rows: a slice of the longest array so far."""
        found = self._same.get(name)
        if found is None or len(found) < count:
            found = self._same[name] = arrow_repeated(value, arrow_type, count)
        return found if len(found) == count else found.slice(0, count)


def _clip(offsets: Int64s, from_offset: int, until_offset: int) -> tuple[int, int]:
    """The rows in a range of offsets. Offsets increase, and most chunks are completely inside."""
    first, end = 0, len(offsets)
    if end and offsets[0] < from_offset:
        first = int(np.searchsorted(offsets, from_offset))
    if end and offsets[-1] >= until_offset:
        end = max(first, int(np.searchsorted(offsets, until_offset)))
    return first, end
