"""The bytes of records in columns: keys, values, and which record type each is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ottla.wire.batch import Record
from ottla.wire.support import Refused, read_varint

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Bools, Int32s, Int64s

__all__ = ["is_of_types", "key_of", "read_frame", "record_at", "value_of"]


def key_of(columns: Columns, row: int) -> bytes | None:
    return _run(columns, columns.key_start, columns.key_length, row)


def value_of(columns: Columns, row: int) -> bytes | None:
    return _run(columns, columns.value_start, columns.value_length, row)


def record_at(columns: Columns, row: int) -> Record:
    """The record without its headers."""
    offset, timestamp = int(columns.offset[row]), int(columns.timestamp[row])
    return Record(offset, timestamp, key_of(columns, row), value_of(columns, row))


def _run(columns: Columns, starts: Int32s, lengths: Int32s, row: int) -> bytes | None:
    start, length = int(starts[row]), int(lengths[row])
    return None if length < 0 else bytes(columns.data.data[start : start + length])


def is_of_types(columns: Columns, types: tuple[int, ...], *, is_keyed: bool) -> Bools:
    """The records of some types, which stand as int16 before a key, or as the second byte of a metadata record."""
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
    """Type and version of a metadata record, and where its body begins; None if it is cut off."""
    try:
        _, at = read_varint(value, 0)
        record_type, at = read_varint(value, at)
        version, at = read_varint(value, at)
    except (IndexError, Refused):
        return None
    return record_type, version, at
