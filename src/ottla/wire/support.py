"""Functions that generated codecs call: the rare paths, and the caches of compiled formats.

Peers choose the lengths and strings that fill these caches, so every cache is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from struct import Struct
from typing import Any

from ottla.wire.shape import STRING_MAX_BYTES
from ottla.wire.trace import uvarint

CACHED_COUNT_MAX = 512
"""Formats for longer arrays are made each time: they are rare, and each would stay for ever."""
CACHED_FORMATS_MAX = 1024
CACHED_STRINGS_MAX = 8192
CACHED_STRING_MAX_BYTES = 256
CACHED_VARINTS_MAX = 16_384


class Refused(Exception):
    """The compiled code saw something wrong; the interpreter will say what."""


def long_varint(b: bytes, at: int) -> tuple[int, int]:
    """The unsigned varint at `at`, of more than one byte -> its value and how many bytes it has beyond the first."""
    value = b[at] & 0x7F
    for extra in range(1, 5):
        byte = b[at + extra]
        value |= (byte & 0x7F) << (7 * extra)
        if byte < 0x80:
            if value >> 31:  # negative in Java, never valid as a length, count, tag or size
                raise Refused
            return value, extra
    raise Refused


def long_length(b: bytes, at: int) -> tuple[int, int]:
    """Like long_varint, for a length that must not be null; a first byte of 0 is null."""
    value, extra = long_varint(b, at) if b[at] > 0x7F else (b[at], 0)
    if not value:
        raise Refused
    return value, extra


def long_string_length(b: bytes, at: int) -> tuple[int, int]:
    value, extra = long_length(b, at)
    if value > STRING_MAX_BYTES + 1:
        raise Refused
    return value, extra


def long_nullable_string_length(b: bytes, at: int) -> tuple[int, int]:
    value, extra = long_varint(b, at)
    if value > STRING_MAX_BYTES + 1:
        raise Refused
    return value, extra


def read_varint(b: bytes, at: int) -> tuple[int, int]:
    """The unsigned varint at `at` -> its value and the position after it."""
    value = b[at]
    if value < 0x80:
        return value, at + 1
    value, extra = long_varint(b, at)
    return value, at + 1 + extra


def read_unknown_tags(b: bytes, at: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """A tagged section with only unknown tags -> the tags and the position after it."""
    tags: dict[int, bytes] = {}
    previous = -1
    for _ in range(count):
        tag, at = read_varint(b, at)
        size, at = read_varint(b, at)
        if tag <= previous or at + size > len(b):
            raise Refused
        previous = tag
        tags[tag] = b[at : at + size]
        at += size
    return tags or None, at  # a count of 0 may have been written as a long varint


def tagged_section(
    known: list[tuple[int, bytes]], unknown: dict[int, bytes] | None, known_tags: Container[int] = ()
) -> bytes:
    """The bytes of a tagged section, known and unknown fields in order of their tags."""
    if unknown:
        if any(tag in known_tags for tag in unknown) or min(unknown) < 0 or max(unknown) >= 1 << 31:
            raise Refused
        known += unknown.items()
        known.sort()
    parts = [uvarint(len(known))]
    for tag, raw in known:
        parts += (uvarint(tag), uvarint(len(raw)), raw)
    return b"".join(parts)


class ArrayReaders(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Length on the wire -> unpack_from of an array of that length and of the fixed fields after it."""

    def __init__(self, element: str, suffix: str, bias: int) -> None:
        self.element = element
        self.suffix = suffix
        self.bias = bias

    def __missing__(self, length: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        count = length - self.bias
        if count < 0:
            raise Refused
        unpack = Struct(f">{repeated(self.element, count)}{self.suffix}").unpack_from
        if count < CACHED_COUNT_MAX:
            self[length] = unpack
        return unpack


def repeated(element: str, count: int) -> str:
    return element * count if len(element) > 1 else f"{count}{element}"


class RowReaders(dict[int | tuple[int, ...], Callable[[bytes, int], tuple[Any, ...]]]):
    """Lengths on the wire -> unpack_from of a whole row. `pieces`: formats, with "*" before an array's element."""

    def __init__(self, pieces: tuple[str, ...], bias: int) -> None:
        self.pieces = pieces
        self.bias = bias

    def __missing__(self, lengths: int | tuple[int, ...]) -> Callable[[bytes, int], tuple[Any, ...]]:
        counts = iter(lengths if isinstance(lengths, tuple) else (lengths,))
        form = "".join(
            repeated(piece[1:], next(counts) - self.bias) if piece[0] == "*" else piece for piece in self.pieces
        )
        if len(self) >= CACHED_FORMATS_MAX:
            self.clear()
        unpack = self[lengths] = Struct(">" + form).unpack_from
        return unpack


class ArrayWriters(dict[int | tuple[int, ...], Callable[..., bytes]]):
    """Counts of the arrays in a run (-1: null) -> pack of the whole run.

    `pieces`: a format, or "*" and an element's format for an array with its length before it.
    """

    def __init__(self, pieces: tuple[str, ...], is_compact: bool) -> None:
        self.pieces = pieces
        self.is_compact = is_compact

    def __missing__(self, counts: int | tuple[int, ...]) -> Callable[..., bytes]:
        numbers = counts if isinstance(counts, tuple) else (counts,)
        left = iter(numbers)
        form = "".join(self.array(piece[1:], next(left)) if piece[0] == "*" else piece for piece in self.pieces)
        pack = Struct(">" + form).pack
        if sum(numbers) < CACHED_COUNT_MAX:
            if len(self) >= CACHED_FORMATS_MAX:
                self.clear()
            self[counts] = pack
        return pack

    def array(self, element: str, count: int) -> str:
        length = f"{len(uvarint(count + 1))}s" if self.is_compact else "i"
        return length + repeated(element, max(count, 0))


class Varints(dict[int, bytes]):
    """Count -> the compact length; -1 is null."""

    def __missing__(self, count: int) -> bytes:
        raw = uvarint(count + 1)
        if len(self) < CACHED_VARINTS_MAX:
            self[count] = raw
        return raw


class Lengths(dict[int, bytes]):
    """Count -> the classic int32 length."""

    pack = Struct(">i").pack

    def __missing__(self, count: int) -> bytes:
        raw: bytes = self.pack(count)
        if len(self) < CACHED_VARINTS_MAX:
            self[count] = raw
        return raw


class Strings(dict[str | None, bytes]):
    """A string -> its bytes with the length before them."""

    def __init__(self, prefix: Callable[[int], bytes], null: bytes | None) -> None:
        self.prefix = prefix
        self.null = null
        self._forget()

    def _forget(self) -> None:
        self.clear()
        if self.null is not None:
            self[None] = self.null

    def __missing__(self, text: str | None) -> bytes:
        if not isinstance(text, str):
            raise Refused
        raw = text.encode()
        if len(raw) > STRING_MAX_BYTES:
            raise Refused
        found = self.prefix(len(raw)) + raw
        if len(raw) < CACHED_STRING_MAX_BYTES:
            if len(self) >= CACHED_STRINGS_MAX:
                self._forget()
            self[text] = found
        return found


VARINTS = Varints()
LENGTHS = Lengths()
_short = Struct(">h").pack
COMPACT_STRINGS = Strings(VARINTS.__getitem__, None)
COMPACT_NULLABLE_STRINGS = Strings(VARINTS.__getitem__, b"\x00")
CLASSIC_STRINGS = Strings(_short, None)
CLASSIC_NULLABLE_STRINGS = Strings(_short, b"\xff\xff")
BOOLS = {False: False, True: True}
"""A lookup raises KeyError for a value that is not a bool; struct's "?" would accept anything."""
