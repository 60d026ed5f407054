"""The records of a batch of magic 2.

One record is `length, attributes, timestamp delta, offset delta, key, value, headers`, all integers but the
attributes zigzag varints; a length below zero stands for null.

Theory of operation. There are two readers with the same results:

- `read_records` is one flat loop for the usual records. It returns None, without a reason, for anything unusual:
  damage, but also rarities such as a timestamp that overflows.
- `walk` is slow and exact. It returns the position of every field, and raises `WireError` with path and byte offset
  for damage.

Callers use the first and, if it returns None, the second; so the texts of errors are written once and the loop stays
short. The numba decoder in `ottla.wire.columns` relies on `walk` in the same way, and compaction uses its positions to
copy records without decoding.

No reader trusts a count: every record has at least seven bytes, so a loop over them ends with the input.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, NoReturn

import msgspec

from ottla.wire.fault import WireError
from ottla.wire.varint import encode_varint, raw_varint, unfold, wrap_int64

__all__ = [
    "HEADER_OVERHEAD_MAX",
    "RECORD_BYTES_MIN",
    "RECORD_OVERHEAD_MAX",
    "Header",
    "Record",
    "RecordPosition",
    "Section",
    "TimestampType",
    "encode_record",
    "read_records",
    "walk",
    "walk_headers",
    "walk_records",
]

# length, attributes, timestamp delta, offset delta, key length, value length and header count, one byte each
RECORD_BYTES_MIN: Final = 7
RECORD_OVERHEAD_MAX: Final = 36
"""What a record can take beside its key, value and headers: five bytes each for its own length, the key's, the value's,
the number of headers and the offset's delta, ten for the timestamp's delta, and one of attributes."""
HEADER_OVERHEAD_MAX: Final = 10

Bytes = bytes | bytearray | memoryview
Header = tuple[str, Bytes | None]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record with its absolute offset and timestamp.

    Keys and values are `bytes`, or views where the reader was asked for them.
    """

    offset: int
    timestamp: int
    key: Bytes | None
    value: Bytes | None
    headers: Sequence[Header] = ()


class TimestampType(IntEnum):
    """Whether timestamps are the producer's or the broker's: bit 3 of the attributes."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordPosition(NamedTuple):
    """The positions of the parts of a record in its section; a length of -1 is null."""

    start: int
    timestamp_delta: int
    offset_delta: int
    key_length_start: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    headers_start: int
    header_count: int
    end: int


class Section(NamedTuple):
    """The (decompressed) records of one batch, and their name in errors."""

    data: bytes | memoryview
    path: str
    byte_offset: int
    was_compressed: bool

    def refuse(self, field: str, position: int, reason: str) -> NoReturn:
        """Raise the error for `position` in the section; for compressed input, with the position of the section."""
        if self.was_compressed:
            raise WireError(f"{self.path}{field}", self.byte_offset, f"{reason} (byte {position} after decompression)")
        raise WireError(f"{self.path}{field}", self.byte_offset + position, reason)


# --- the fast reader --------------------------------------------------------------------------------------------------

_INT64_MAX: Final = (1 << 63) - 1
# Bases this far from the limits of 64 bits cannot overflow by a small delta.
_BASE_MAX: Final = 1 << 62


def read_records(  # noqa: C901  (one flat loop: a call per field would double its time)
    data: bytes | memoryview, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> list[Record] | None:
    """The records of a section, or None if `walk` must read it; `append_time` replaces each record's own timestamp.

    Slices beyond the end do not raise, but then the next index does, or the position differs from the record's end.
    """
    records: list[Record] = []
    if abs(base_offset) > _BASE_MAX or abs(base_timestamp) > _BASE_MAX:
        return None
    if not 0 <= count * RECORD_BYTES_MIN <= len(data):
        return None
    append = records.append
    position = 0
    try:
        for _ in range(count):
            size = data[position]
            position += 1
            if size > 127:
                if (high := data[position]) < 128:
                    size = size & 127 | high << 7
                    position += 1
                else:
                    size, position = raw_varint(data, position - 1, 5)
            end = position + (size >> 1)
            raw = data[position + 1]
            position += 2
            if raw > 127:
                if (high := data[position]) < 128:
                    raw = raw & 127 | high << 7
                    position += 1
                else:
                    raw, position = raw_varint(data, position - 1, 10)
            timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
            raw = data[position]
            position += 1
            if raw > 127:
                if (high := data[position]) < 128:
                    raw = raw & 127 | high << 7
                    position += 1
                else:
                    raw, position = raw_varint(data, position - 1, 5)
            offset = base_offset + (raw >> 1 ^ -(raw & 1))
            raw = data[position]
            position += 1
            if raw > 127:
                if (high := data[position]) < 128:
                    raw = raw & 127 | high << 7
                    position += 1
                else:
                    raw, position = raw_varint(data, position - 1, 5)
            if raw & 1:
                key = None
            else:
                stop = position + (raw >> 1)
                key = data[position:stop]
                position = stop
            raw = data[position]
            position += 1
            if raw > 127:
                if (high := data[position]) < 128:
                    raw = raw & 127 | high << 7
                    position += 1
                else:
                    raw, position = raw_varint(data, position - 1, 5)
            if raw & 1:
                value = None
            else:
                stop = position + (raw >> 1)
                value = data[position:stop]
                position = stop
            headers: tuple[Header, ...] = ()
            if data[position]:
                headers, position = _read_headers(data, position)
            else:
                position += 1
            if position != end or size & 1 or not -_INT64_MAX <= timestamp <= _INT64_MAX:
                return None
            append(Record(offset, append_time if append_time is not None else timestamp, key, value, headers))
    except (IndexError, OverflowError):
        return None
    return records if position == len(data) else None


def _read_headers(data: bytes | memoryview, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = raw_varint(data, position, 5)
    headers: list[Header] = []
    if count & 1:
        raise IndexError
    for _ in range(count >> 1):
        raw, position = raw_varint(data, position, 5)
        if raw & 1:
            raise IndexError
        stop = position + (raw >> 1)
        key = decode_header_key(data[position:stop])
        raw, position = raw_varint(data, stop, 5)
        if raw & 1:
            headers.append((key, None))
        else:
            stop = position + (raw >> 1)
            headers.append((key, data[position:stop]))
            position = stop
    return tuple(headers), position


def decode_header_key(data: Bytes) -> str:
    """Header keys are UTF-8; invalid bytes become U+FFFD, in the same way as in Java's decoder."""
    return bytes(data).decode("utf-8", _REPLACE)


def _replace_as_java_does(error: UnicodeError) -> tuple[str, int]:
    # Java writes one mark for the three bytes of a surrogate, or for its first two; Python one for each byte.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    first, second, third = (error.object[error.start :] + b"\0\0")[:3]
    if first == 0xED and 0xA0 <= second <= 0xBF:
        return "\ufffd", error.start + (3 if 0x80 <= third <= 0xBF else 2)
    return "\ufffd", error.end


_REPLACE: Final = "ottla.replace_as_java_does"
codecs.register_error(_REPLACE, _replace_as_java_does)


# --- the exact reader -------------------------------------------------------------------------------------------------


def walk(section: Section, count: int) -> Iterator[RecordPosition]:
    """The positions of each record; raises WireError unless the bytes are exactly `count` records."""
    if count < 0:
        section.refuse("", 0, f"the header claims {count} records")
    cursor = _Cursor(section)
    for index in range(count):
        yield cursor.record(index)
    if cursor.position != len(section.data):
        section.refuse("", cursor.position, f"{len(section.data) - cursor.position} bytes follow the {count} records")


def walk_headers(section: Section, start: int, count: int) -> list[tuple[int, int, int, int]]:
    """Start and length of key and value of each header of a record that was walked before."""
    cursor = _Cursor(section)
    cursor.position = start
    return [cursor.header(number) for number in range(count)]


def walk_records(
    section: Section, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> list[Record]:
    """The same as `read_records`, through the exact reader."""
    return [
        Record(
            wrap_int64(base_offset + place.offset_delta),
            wrap_int64(base_timestamp + place.timestamp_delta) if append_time is None else append_time,
            _slice(section.data, place.key_start, place.key_length),
            _slice(section.data, place.value_start, place.value_length),
            tuple(
                (decode_header_key(section.data[key : key + key_length]), _slice(section.data, value, value_length))
                for key, key_length, value, value_length in walk_headers(
                    section, place.headers_start, place.header_count
                )
            ),
        )
        for place in walk(section, count)
    ]


def _slice(data: bytes | memoryview, start: int, length: int) -> bytes | memoryview | None:
    return None if length < 0 else data[start : start + length]


class _Cursor:
    """A position in a section; if a read fails, its error names the field."""

    __slots__ = ("data", "index", "limit", "position", "section")

    def __init__(self, section: Section) -> None:
        self.section = section
        self.data = section.data
        self.position = 0
        self.limit = len(section.data)
        self.index = 0

    def refuse(self, field: str, position: int, reason: str) -> NoReturn:
        self.section.refuse(f"[{self.index}]{field}", position, reason)

    def varint(self, field: str, bytes_max: int = 5) -> int:
        start = self.position
        try:
            raw, self.position = raw_varint(self.data, start, bytes_max)
        except IndexError:
            self.refuse(field, start, "the records end here")
        except OverflowError as error:
            self.refuse(field, start, f"a varint with {error}")
        if self.position > self.limit:
            self.refuse(field, start, "the record's length ends here")
        return unfold(raw)

    def blob(self, field: str) -> tuple[int, int]:
        """Start and length of a nullable run of bytes; any negative length is null, as in Java."""
        start = self.position
        length = max(self.varint(f"{field}_length"), -1)
        place = self.position
        if length > self.limit - place:
            self.refuse(f"{field}_length", start, f"{length} bytes where the record has {self.limit - place} left")
        self.position += max(length, 0)
        return place, length

    def record(self, index: int) -> RecordPosition:
        self.index = index
        self.limit = len(self.data)
        start = self.position
        length = self.varint(".length")
        if not 0 < length <= self.limit - self.position:
            self.refuse(".length", start, f"{length} bytes where {self.limit - self.position} are left")
        end = self.limit = self.position + length
        self.position += 1  # attributes: no bit has a meaning
        timestamp_delta = self.varint(".timestamp_delta", 10)
        offset_delta = self.varint(".offset_delta")
        key_length_start = self.position
        key_start, key_length = self.blob(".key")
        value_start, value_length = self.blob(".value")
        header_count = self.header_count()
        headers_start = self.position
        for number in range(header_count):
            self.header(number)
        if self.position != end:
            self.refuse("", self.position, f"{end - self.position} bytes of the record's length are left over")
        return RecordPosition(
            start,
            timestamp_delta,
            offset_delta,
            key_length_start,
            key_start,
            key_length,
            value_start,
            value_length,
            headers_start,
            header_count,
            end,
        )

    def header_count(self) -> int:
        start = self.position
        count = self.varint(".header_count")
        if not 0 <= count <= self.limit - self.position:
            self.refuse(".header_count", start, f"{count} headers where {self.limit - self.position} bytes are left")
        return count

    def header(self, number: int) -> tuple[int, int, int, int]:
        start = self.position
        key_start, key_length = self.blob(f".headers[{number}].key")
        if key_length < 0:
            self.refuse(f".headers[{number}].key_length", start, "a header's key cannot be null")
        return key_start, key_length, *self.blob(f".headers[{number}].value")


# --- the writer -------------------------------------------------------------------------------------------------------


def encode_record(
    offset_delta: int, timestamp_delta: int, key: Bytes | None, value: Bytes | None, headers: Sequence[Header] = ()
) -> bytes:
    """One record with its length before it."""
    if not -_INT64_MAX <= timestamp_delta <= _INT64_MAX:
        timestamp_delta = wrap_int64(timestamp_delta)
    body = b"".join(
        (
            b"\x00",
            encode_varint(timestamp_delta),
            encode_varint(offset_delta),
            b"\x01" if key is None else encode_varint(len(key)),
            key or b"",
            b"\x01" if value is None else encode_varint(len(value)),
            value or b"",
            _encode_headers(headers) if headers else b"\x00",
        )
    )
    return encode_varint(len(body)) + body


def _encode_headers(headers: Sequence[Header]) -> bytes:
    parts: list[Bytes] = [encode_varint(len(headers))]
    for key, value in headers:
        name = key.encode()
        parts += (encode_varint(len(name)), name)
        parts += (b"\x01",) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)
