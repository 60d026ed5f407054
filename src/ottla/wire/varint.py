"""Zigzag varints, the integers inside records.

A signed integer is folded (0, -1, 1, -2, … become 0, 1, 2, 3, …) and written seven bits a byte, lowest first; the
high bit says that another byte follows. A 32-bit one takes at most five bytes, a 64-bit one ten. Bits beyond the
width are dropped, as Java drops them. Padding (`80 00` for 0) is accepted, also as in Java.
"""

from __future__ import annotations

import functools
from typing import Final

__all__ = ["encode_varint", "raw_varint", "unfold", "wrap_int32", "wrap_int64"]

_INT32_MASK: Final = (1 << 32) - 1
_INT64_MASK: Final = (1 << 64) - 1


@functools.lru_cache(maxsize=4096)
def encode_varint(value: int) -> bytes:
    """The zigzag varint of a 32- or 64-bit integer (both widths give the same bytes).

    Cached, as lengths and deltas recur.
    """
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while raw > 127:
        encoded.append(raw & 127 | 128)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


def raw_varint(data: bytes | memoryview, position: int, bytes_max: int) -> tuple[int, int]:
    """The folded integer at `position` and where it ends; `bytes_max` is 5 for 32 bits, 10 for 64.

    Raises IndexError past the end of the data and OverflowError for an integer that does not end in time.
    """
    raw = shift = 0
    for at in range(position, position + bytes_max):
        byte = data[at]
        raw |= (byte & 127) << shift
        if byte < 128:
            return raw & (_INT32_MASK if bytes_max == 5 else _INT64_MASK), at + 1
        shift += 7
    raise OverflowError(f"no end after {bytes_max} bytes")


def unfold(raw: int) -> int:
    """Undo the zigzag."""
    return raw >> 1 ^ -(raw & 1)


def wrap_int32(value: int) -> int:
    """The value as a signed 32-bit integer, as after an overflow in Java."""
    return (value + 0x80000000 & _INT32_MASK) - 0x80000000


def wrap_int64(value: int) -> int:
    """The value as a signed 64-bit integer: Java adds deltas to offsets and timestamps without an overflow check."""
    return (value + (1 << 63) & _INT64_MASK) - (1 << 63)
