"""The loops of `ottla.wire.columns` in numba. Only that module imports this one, late: numba takes 0.3 s to load.

Each function does in machine code what the pure readers do, and accepts the same input: `walk` in
`ottla.wire.batch_record` explains what it rejects. Positions have 32 bits, so a buffer has fewer than 2^31 bytes.
Compiled code is cached beside the source or in the user's cache folder (`NUMBA_CACHE_DIR` moves it).
"""

# mypy: disable-error-code="return-value, no-untyped-call, call-arg, unreachable"
# numba infers the types; the annotations are for readers, because Python has no names for machine integers.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s = NDArray[np.int32]
    Int64s = NDArray[np.int64]
    Octets = NDArray[np.uint8]

__all__ = ["copy_runs", "count_batches", "count_records", "read_batch_headers", "walk_headers", "walk_sections"]

_LOG_OVERHEAD = 12
_HEADER = 61
_RECORD_MIN = 7
_LOG_APPEND_TIME = 0x08
_FAILED = -1


def _compile(function: Callable[..., Any], *, forceinline: bool) -> Callable[..., Any]:
    # Integer overflow wraps, as intended; bounds are checked by hand; other threads run in the meantime.
    kernel: Callable[..., Any]
    try:
        kernel = njit(cache=True, boundscheck=False, nogil=True, forceinline=forceinline)(function)
    except RuntimeError:  # no cache folder is writable: compile in each process
        kernel = njit(boundscheck=False, nogil=True, forceinline=forceinline)(function)
    return kernel


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at the first call for its types, and cache the code on disk."""
    return _compile(function, forceinline=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile into the callers."""
    return _compile(function, forceinline=True)


# --- batch headers ----------------------------------------------------------------------------------------------------


@compiled
def _int16(data: Octets, at: int) -> int:
    return np.int64(np.int16(np.uint16(data[at]) << np.uint16(8) | np.uint16(data[at + 1])))


@compiled
def _int32(data: Octets, at: int) -> int:
    value = (
        np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    )
    return np.int64(np.int32(value))


@compiled
def _int64(data: Octets, at: int) -> int:
    return np.int64(_int32(data, at) << 32 | _int32(data, at + 4) & 0xFFFFFFFF)


@compiled
def count_batches(data: Octets) -> tuple[int, int, bool]:
    """The number of whole batches of magic 2, their end, and whether something else than a truncated one follows."""
    position = 0
    count = 0
    while len(data) - position >= _LOG_OVERHEAD:
        length = _int32(data, position + 8)
        if length < _HEADER - _LOG_OVERHEAD:
            return count, position, True
        if len(data) - position <= 16:
            break
        if data[position + 16] != 2:
            return count, position, True
        if length + _LOG_OVERHEAD > len(data) - position:
            break
        position += length + _LOG_OVERHEAD
        count += 1
    return count, position, False


@compiled
def read_batch_headers(data: Octets, table: Int64s) -> None:
    """Fill the table's columns, one for each of the batches that were counted; its rows are `columns.BATCH_FIELDS`."""
    position = 0
    for index in range(table.shape[1]):
        table[0, index] = position
        table[1, index] = _int64(data, position)
        table[2, index] = _int32(data, position + 8)
        table[3, index] = _int32(data, position + 12)
        table[4, index] = data[position + 16]
        table[5, index] = _int32(data, position + 17) & 0xFFFFFFFF
        table[6, index] = _int16(data, position + 21)
        table[7, index] = _int32(data, position + 23)
        table[8, index] = _int64(data, position + 27)
        table[9, index] = _int64(data, position + 35)
        table[10, index] = _int64(data, position + 43)
        table[11, index] = _int16(data, position + 51)
        table[12, index] = _int32(data, position + 53)
        table[13, index] = _int32(data, position + 57)
        position += table[2, index] + _LOG_OVERHEAD


@compiled
def count_records(table: Int64s, starts: Int64s, ends: Int64s) -> int:
    """How many records the table's batches claim; -1 if a batch has no room for so many."""
    total = 0
    for section in range(len(starts)):
        count = table[13, section]
        if count < 0 or count * _RECORD_MIN > ends[section] - starts[section]:
            return -1
        total += count
    return total


# --- records ----------------------------------------------------------------------------------------------------------
# Passing an array to another compiled function costs a pair of reference counts, more than a whole record may take. So
# the common varints, of one or two bytes, are decoded from bytes that the loop has loaded itself.


@inlined
def _short_varint(first: int, second: int) -> tuple[int, int]:
    """A zigzag varint of at most two bytes, and its size, which is 0 if it is longer."""
    raw = np.int64(first)
    if raw < 128:
        return raw >> 1 ^ -(raw & 1), 1
    if second < 128:
        raw = raw & 127 | np.int64(second) << 7
        return raw >> 1 ^ -(raw & 1), 2
    return np.int64(0), 0


@compiled
def _varint(data: Octets, at: int, end: int, bytes_max: int) -> tuple[int, int]:
    """A zigzag varint of 32 (`bytes_max` 5) or 64 bits (10), and its end, which is -1 if it does not end in time."""
    raw = np.uint64(0)
    for shift in range(0, 7 * bytes_max, 7):
        if at >= end:
            break
        byte = data[np.uint64(at)]
        at += 1
        raw |= np.uint64(byte & 127) << np.uint64(shift)
        if byte < 128:
            if bytes_max == 5:
                raw &= np.uint64(0xFFFFFFFF)
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
    return np.int64(0), np.int64(_FAILED)


@compiled
def _skip_headers(data: Octets, at: int, end: int, count: int) -> int:
    for _ in range(count):
        length, at = _varint(data, at, end, 5)
        if at < 0 or length < 0 or length > end - at:
            return np.int64(_FAILED)
        length, at = _varint(data, at + length, end, 5)
        if at < 0 or length > end - at:
            return np.int64(_FAILED)
        at += max(length, 0)
    return at


@compiled
def walk_sections(  # noqa: C901  (one loop, see above)
    data: Octets,
    table: Int64s,
    starts: Int64s,
    ends: Int64s,
    offset: Int64s,
    timestamp: Int64s,
    key_start: Int32s,
    key_length: Int32s,
    value_start: Int32s,
    value_length: Int32s,
    headers_start: Int32s,
    header_count: Int32s,
) -> int:
    """Fill the columns from the sections of the table's batches; returns the first that is damaged, or -1.

    With append time, the records' own timestamps are ignored. Before each field, the least size of the rest of the
    record is checked, so that two bytes can be loaded; unsigned indexes save a test for the sign.
    """
    row = np.uint64(0)
    for section in range(len(starts)):
        at = starts[section]
        section_end = ends[section]
        base_offset = table[1, section]
        base_timestamp = table[8, section]
        delta_factor = np.int64(1)
        if table[6, section] & _LOG_APPEND_TIME:
            base_timestamp = table[9, section]
            delta_factor = np.int64(0)
        for _ in range(table[13, section]):
            if section_end - at < _RECORD_MIN:
                return section
            number, size = _short_varint(data[np.uint64(at)], data[np.uint64(at + 1)])
            at += size
            if size == 0:
                number, at = _varint(data, at, section_end, 5)
                if at < 0:
                    return section
            if number < 6 or number > section_end - at:
                return section
            end = at + number

            at += 1  # attributes: no bit has a meaning
            number, size = _short_varint(data[np.uint64(at)], data[np.uint64(at + 1)])
            at += size
            if size == 0:
                number, at = _varint(data, at, end, 10)
                if at < 0:
                    return section
            timestamp[row] = base_timestamp + number * delta_factor

            if end - at < 4:
                return section
            number, size = _short_varint(data[np.uint64(at)], data[np.uint64(at + 1)])
            at += size
            if size == 0:
                number, at = _varint(data, at, end, 5)
                if at < 0:
                    return section
            offset[row] = base_offset + number

            if end - at < 3:
                return section
            number, size = _short_varint(data[np.uint64(at)], data[np.uint64(at + 1)])
            at += size
            if size == 0:
                number, at = _varint(data, at, end, 5)
                if at < 0:
                    return section
            key_start[row] = at
            key_length[row] = max(number, -1)
            at += max(number, 0)

            if end - at < 2:
                return section
            number, size = _short_varint(data[np.uint64(at)], data[np.uint64(at + 1)])
            at += size
            if size == 0:
                number, at = _varint(data, at, end, 5)
                if at < 0:
                    return section
            value_start[row] = at
            value_length[row] = max(number, -1)
            at += max(number, 0)

            if at >= end:
                return section
            if data[np.uint64(at)] == 0:
                at += 1
                headers_start[row] = at
                header_count[row] = 0
            else:
                number, at = _varint(data, at, end, 5)
                if at < 0 or number < 0 or number > end - at:
                    return section
                headers_start[row] = at
                header_count[row] = number
                at = _skip_headers(data, at, end, number)
            if at != end:
                return section
            at = end
            row += np.uint64(1)
        if at != section_end:
            return section
    return -1


@compiled
def walk_headers(
    data: Octets,
    headers_start: Int32s,
    header_count: Int32s,
    key_start: Int32s,
    key_length: Int32s,
    value_start: Int32s,
    value_length: Int32s,
) -> None:
    """Fill the positions of keys and values of all headers, which were validated before."""
    end = len(data)
    index = 0
    for row in range(len(headers_start)):
        at = np.int64(headers_start[row])
        for _ in range(header_count[row]):
            length, at = _varint(data, at, end, 5)
            key_start[index] = at
            key_length[index] = length
            length, at = _varint(data, at + length, end, 5)
            length = max(length, -1)
            value_start[index] = at
            value_length[index] = length
            at += max(length, 0)
            index += 1


# --- gathering --------------------------------------------------------------------------------------------------------


@intrinsic
def copy(typing: Any, target: Any, target_at: Any, source: Any, source_at: Any, size: Any) -> Any:  # noqa: ANN401, ARG001, RUF100
    """memcpy between two arrays: a byte loop, or assigning slices, takes two to five times as long."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_value, target_at_value, source_value, source_at_value, size_value = arguments
        target_array = context.make_array(signature.args[0])(context, builder, target_value)
        source_array = context.make_array(signature.args[2])(context, builder, source_value)
        cgutils.raw_memcpy(
            builder,
            builder.gep(target_array.data, [target_at_value]),
            builder.gep(source_array.data, [source_at_value]),
            size_value,
            1,
        )
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64, types.int64), generate


@compiled
def copy_runs(data: Octets, starts: Int32s, lengths: Int32s, ends: Int32s, output: Octets) -> None:
    """Copy runs of bytes one after the other; `ends` gets the end of each (its first entry is 0)."""
    at = np.int64(0)
    for row in range(len(starts)):
        length = np.int64(lengths[row])
        if length > 0:
            copy(output, at, data, np.int64(starts[row]), length)
            at += length
        ends[row + 1] = at
