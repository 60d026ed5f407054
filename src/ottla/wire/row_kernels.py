"""The loops over rows that become records, in numba. Import it late: numba takes 0.3 s to load."""

# mypy: disable-error-code="return-value, no-untyped-call, call-arg, unreachable"
# numba finds the types by itself; the annotations tell them to readers, as Python has no names for machine integers.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ottla.wire.columns_kernels import compiled, copy, inlined

if TYPE_CHECKING:
    from ottla.wire.columns_kernels import Int32s, Int64s, Octets

__all__ = ["encode_rows", "hash_runs"]

_MURMUR_SEED = 0x9747B28C
_MURMUR_FACTOR = 0x5BD1E995


# --- records ----------------------------------------------------------------------------------------------------------
# As in `columns_kernels`, no array is passed to another function in the loop. A varint is made in a register and stored
# as eight bytes at once, of which the next store overwrites those behind it.


@inlined
def _varint(value: int) -> tuple[int, int]:
    """A zigzag varint of at most eight bytes, the first one lowest, and its size."""
    raw = np.uint64(value << 1 ^ value >> 63)
    if raw < 128:
        return raw, np.int64(1)
    packed = np.uint64(0)
    shift = np.uint64(0)
    while raw > 127:
        packed |= (raw & np.uint64(127) | np.uint64(128)) << shift
        raw >>= np.uint64(7)
        shift += np.uint64(8)
    return packed | raw << shift, np.int64(shift >> np.uint64(3)) + 1


@intrinsic
def _store(typing: Any, target: Any, at: Any, value: Any) -> Any:  # noqa: ANN401, ARG001, RUF100
    """Write eight bytes into an array, the lowest first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, arguments[2].type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(target, types.int64, types.uint64), generate


@compiled
def encode_rows(
    order: Int64s,
    place: int,
    room: int,
    is_empty: bool,
    head: Octets,
    offset_delta: int,
    key_data: Octets,
    key_start: Int32s,
    key_length: Int32s,
    value_data: Octets,
    value_start: Int32s,
    value_length: Int32s,
    header_start: Int32s,
    header_length: Int32s,
    name_data: Octets,
    name_start: Int32s,
    name_length: Int32s,
    content_data: Octets,
    content_start: Int32s,
    content_length: Int32s,
    output: Octets,
    at: int,
) -> tuple[int, int]:
    """Write rows from `order[place]` on behind each other, as many as there is room for; one in any case if the batch
    is empty.

    `head` is what each record begins with behind its length: attributes and timestamp. Returns the place that comes
    next, and where the bytes end; the output has eight bytes more than that.
    """
    end_max = at + room
    while place < len(order):
        row = order[place]
        key_size = max(np.int64(key_length[row]), np.int64(0))
        value_size = max(np.int64(value_length[row]), np.int64(0))
        headers_from = np.int64(header_start[row])
        headers_to = headers_from + header_length[row]
        offset, offset_size = _varint(offset_delta)
        key, key_varint_size = _varint(np.int64(key_length[row]))
        value, value_varint_size = _varint(np.int64(value_length[row]))
        count, count_size = _varint(np.int64(header_length[row]))
        size = len(head) + offset_size + key_varint_size + key_size + value_varint_size + value_size + count_size
        for each in range(headers_from, headers_to):
            for length in (np.int64(name_length[each]), np.int64(content_length[each])):
                _, varint_size = _varint(length)
                size += varint_size + max(length, np.int64(0))

        length, varint_size = _varint(size)
        if at + varint_size + size > end_max and not is_empty:
            break
        is_empty = False
        _store(output, at, length)
        at += varint_size
        copy(output, at, head, 0, len(head))
        at += len(head)
        _store(output, at, offset)
        at += offset_size
        _store(output, at, key)
        at += key_varint_size
        copy(output, at, key_data, np.int64(key_start[row]), key_size)
        at += key_size
        _store(output, at, value)
        at += value_varint_size
        copy(output, at, value_data, np.int64(value_start[row]), value_size)
        at += value_size
        _store(output, at, count)
        at += count_size
        for each in range(headers_from, headers_to):
            size = np.int64(name_length[each])
            length, varint_size = _varint(size)
            _store(output, at, length)
            at += varint_size
            copy(output, at, name_data, np.int64(name_start[each]), size)
            at += size
            size = np.int64(content_length[each])
            length, varint_size = _varint(size)
            _store(output, at, length)
            at += varint_size
            size = max(size, np.int64(0))
            copy(output, at, content_data, np.int64(content_start[each]), size)
            at += size
        offset_delta += 1
        place += 1
    return place, at


# --- keys -------------------------------------------------------------------------------------------------------------


@compiled
def hash_runs(data: Octets, starts: Int32s, lengths: Int32s, hashes: Int64s) -> None:
    """MurmurHash2 of each run of bytes with Kafka's seed, as 32 bits without a sign; a null is hashed as no bytes."""
    factor = np.uint32(_MURMUR_FACTOR)
    for row in range(len(starts)):
        at = np.int64(starts[row])
        left = max(np.int64(lengths[row]), np.int64(0))
        state = np.uint32(_MURMUR_SEED) ^ np.uint32(left)
        while left >= 4:
            mixed = (
                np.uint32(data[at])
                | np.uint32(data[at + 1]) << np.uint32(8)
                | np.uint32(data[at + 2]) << np.uint32(16)
                | np.uint32(data[at + 3]) << np.uint32(24)
            )
            mixed = np.uint32(mixed * factor)
            mixed = np.uint32((mixed ^ mixed >> np.uint32(24)) * factor)
            state = np.uint32(np.uint32(state * factor) ^ mixed)
            at += 4
            left -= 4
        if left > 0:
            for byte in range(left):
                state ^= np.uint32(data[at + byte]) << np.uint32(8 * byte)
            state = np.uint32(state * factor)
        state = np.uint32((state ^ state >> np.uint32(13)) * factor)
        hashes[row] = np.uint32(state ^ state >> np.uint32(15))
