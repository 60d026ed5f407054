"""The bytes of records in columns: keys, values, and record types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ottla.wire.support import Refused, read_varint

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Bools, Int32s, Int64s

__all__ = ["RecordBytes", "is_of_types", "read_frame"]


class RecordBytes:
    """Keys and values of some rows of columns, numbered from 0."""

    def __init__(self, columns: Columns, rows: Int64s) -> None:
        self._data = columns.data.tobytes()  # slicing bytes costs half of slicing a memoryview
        self.keys = self._runs(columns.key_start[rows], columns.key_length[rows])
        self.values = self._runs(columns.value_start[rows], columns.value_length[rows])

    def _runs(self, starts: Int32s, lengths: Int32s) -> list[bytes | None]:
        data = self._data
        ends = (starts.astype(np.int64) + lengths).tolist()
        is_set = (lengths >= 0).tolist()
        places = zip(starts.tolist(), ends, is_set, strict=True)
        return [data[start:end] if there else None for start, end, there in places]


def is_of_types(columns: Columns, types: tuple[int, ...], *, is_keyed: bool) -> Bools:
    """A mask of records of some types. The type is an int16 before a key, or the second byte of a metadata record."""
    starts, lengths = (
        (columns.key_start, columns.key_length) if is_keyed else (columns.value_start, columns.value_length)
    )
    rows = np.flatnonzero(lengths >= 2)
    first, second = (columns.data[starts[rows] + at].astype(np.int64) for at in (0, 1))
    found: Int64s = np.full(len(columns), -1, np.int64)
    found[rows] = first << 8 | second if is_keyed else second
    mask: Bools = np.isin(found, types)
    return mask


def read_frame(value: bytes) -> tuple[int, int, int] | None:
    """Type, version and start of the body of a metadata record; None if it is truncated."""
    try:
        _, at = read_varint(value, 0)
        record_type, at = read_varint(value, at)
        version, at = read_varint(value, at)
    except (IndexError, Refused):
        return None
    return record_type, version, at
