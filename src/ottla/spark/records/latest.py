"""The newest row of each key, as after compaction.

All records of a key are in one partition, ordered by time, which one task reads. Rows are collected, and compacted when
most of them are outdated, so memory grows with the number of keys, not with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from ottla.spark.records.decode import DecodedRows

__all__ = ["Newest", "newest"]

ROWS_MIN: Final = 100_000
"""Fewer rows are not compacted."""


class Newest:
    def __init__(self, schema: pa.Schema, *, rows_min: int = ROWS_MIN) -> None:
        self._schema = schema
        self._rows_min = rows_min
        self._batches: list[pa.RecordBatch] = []
        self._count = 0
        self._at: dict[bytes, int] = {}
        """Key -> the number of its newest row."""

    def add(self, decoded: DecodedRows) -> None:
        self._batches.append(decoded.rows)
        for key, is_tombstone in zip(decoded.keys, decoded.tombstones, strict=True):
            # Remove and insert, so that the numbers stay in order.
            self._at.pop(key, None)
            if not is_tombstone:
                self._at[key] = self._count
            self._count += 1
        if self._count > max(self._rows_min, 2 * len(self._at)):
            self._thin_out()

    def _thin_out(self) -> None:
        rows = pa.Table.from_batches(self._batches, self._schema).take(pa.array(self._at.values(), pa.int64()))
        self._batches = rows.combine_chunks().to_batches()
        self._at = {key: number for number, key in enumerate(self._at)}
        self._count = len(self._at)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The newest rows of keys that were not deleted, in the order in which they were written."""
        self._thin_out()
        yield from (batch for batch in self._batches if batch.num_rows)


def newest(schema: pa.Schema, decoded: Iterable[DecodedRows]) -> Iterator[pa.RecordBatch]:
    """The newest rows among all."""
    found = Newest(schema)
    for each in decoded:
        found.add(each)
    return found.batches()
