"""Message sets of magic 0 and 1, the formats before Kafka 0.11: reading only.

Today's brokers store neither, but old logs and captures hold them. A message is ::

    offset        int64   0
    message_size  int32   8   bytes after this field
    crc           uint32 12   CRC-32 (zlib's) of everything that follows
    magic         int8   16
    attributes    int8   17   bits 0-2 codec, bit 3 log append time (magic 1)
    timestamp     int64  18   magic 1 only
    key           bytes       int32 length, below zero for null
    value         bytes       likewise

Compression wraps messages: the value of one message is a whole compressed message set. The wrapper has the offset of
its last inner message. In magic 0 inner offsets are absolute. In magic 1 they count from the first inner message, so
the absolute ones follow from the wrapper's; a wrapper at offset 0 is treated as a produced set, whose inner offsets are
used unchanged. With log append time the wrapper's timestamp replaces those inside. Inner messages are never compressed
again.

A message and its inner ones are one batch here, as in the Java client: `LegacyBatch` has the properties of
`ottla.wire.batch_view.BatchView` that make sense for it. A set that ends in the middle of an inner message is read up
to there, also as in Java.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

import msgspec

from ottla.wire.batch_record import Record, Section, TimestampType
from ottla.wire.compress import DEFAULT_MAX_BYTES, Compression, decompress
from ottla.wire.fault import WireError
from ottla.wire.varint import wrap_int64

__all__ = ["LegacyBatch", "MessagePosition", "read_legacy_batch"]

_HEADER: Final = struct.Struct(">qiIbb")
_HEADER_BYTES: Final = _HEADER.size
_LOG_OVERHEAD_BYTES: Final = 12
_MESSAGE_SIZE_MIN: Final = 14
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_CRC_END: Final = 16
_CODEC_BITS: Final = 0x07
_LOG_APPEND_TIME_BIT: Final = 0x08
_NO_TIMESTAMP: Final = -1


class MessagePosition(NamedTuple):
    """One message of a section: absolute offset, timestamp, and the positions of key and value (-1: null)."""

    offset: int
    timestamp: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int


class _Message(NamedTuple):
    """A message inside a section, fields as stored."""

    start: int
    end: int
    offset: int
    crc: int
    magic: int
    attributes: int


class LegacyBatch(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A message of magic 0 or 1, with the messages inside it if it is compressed."""

    buffer: memoryview
    position: int
    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    @property
    def size_bytes(self) -> int:
        return self.message_size + _LOG_OVERHEAD_BYTES

    @property
    def data(self) -> memoryview:
        return self.buffer[self.position : self.position + self.size_bytes]

    @property
    def base_offset(self) -> int:
        """The first record's offset; a wrapper must be decompressed for it."""
        return self.positions()[1][0].offset if self.is_compressed else self.offset

    @property
    def last_offset(self) -> int:
        return self.offset

    @property
    def next_offset(self) -> int:
        return wrap_int64(self.offset + 1)

    @property
    def compression(self) -> Compression:
        try:
            return Compression(self.attributes & _CODEC_BITS)
        except ValueError:
            reason = f"compression {self.attributes & _CODEC_BITS} does not exist"
            raise WireError("Message.attributes", self.position + 17, reason) from None

    @property
    def is_compressed(self) -> bool:
        return self.attributes & _CODEC_BITS != 0

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if self.attributes & _LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def timestamp(self) -> int:
        """The message's own timestamp; -1 in magic 0."""
        if self.magic == 0:
            return _NO_TIMESTAMP
        if self.message_size < _MESSAGE_SIZE_MIN + _INT64.size:
            raise WireError("Message.timestamp", self.position + _HEADER_BYTES, "the message ends before it")
        timestamp: int = _INT64.unpack_from(self.buffer, self.position + _HEADER_BYTES)[0]
        return timestamp

    @property
    def max_timestamp(self) -> int:
        return self.timestamp

    @property
    def is_control(self) -> bool:
        return False

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_valid(self) -> bool:
        return self.crc == zlib.crc32(self.data[_CRC_END:])

    def check_crc(self) -> None:
        """Raise WireError if the checksum is wrong."""
        if not self.is_valid:
            computed = zlib.crc32(self.data[_CRC_END:])
            raise WireError("Message.crc", self.position + 12, f"{self.crc:#010x} is stored, {computed:#010x} computed")

    def check_inner_crcs(self, *, max_decompressed_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Raise WireError if a message inside has a wrong checksum.

        Java's consumer checks them, its plain iteration does not.
        """
        if self.is_compressed:
            section = self._inner_section(max_decompressed_bytes)
            for index, message in enumerate(_inner_messages(section)):
                if message.crc != zlib.crc32(section.data[message.start + _CRC_END : message.end]):
                    section.refuse(f"[{index}].crc", message.start + 12, "the checksum is wrong")

    def records(self, *, copy: bool = True, max_decompressed_bytes: int = DEFAULT_MAX_BYTES) -> list[Record]:
        """The inner messages of a wrapper, else the message itself.

        Keys and values as `bytes` or, if not `copy`, views.
        """
        section, positions = self.positions(max_decompressed_bytes=max_decompressed_bytes)
        data = section.data if copy else memoryview(section.data)
        return [
            Record(
                position.offset,
                position.timestamp,
                None
                if position.key_length < 0
                else data[position.key_start : position.key_start + position.key_length],
                None
                if position.value_length < 0
                else data[position.value_start : position.value_start + position.value_length],
            )
            for position in positions
        ]

    def positions(self, *, max_decompressed_bytes: int = DEFAULT_MAX_BYTES) -> tuple[Section, list[MessagePosition]]:
        """The bytes with the records' keys and values, and the positions of each."""
        if self.is_compressed:
            inner = self._inner_section(max_decompressed_bytes)
            return inner, self._inner_positions(inner)
        outer = self._outer_section()
        return outer, [self._outer_position(outer)]

    def _outer_section(self) -> Section:
        return Section(bytes(self.data), "Message", self.position, was_compressed=False)

    def _outer_position(self, outer: Section) -> MessagePosition:
        return _position(
            outer, "", _Message(0, self.size_bytes, self.offset, self.crc, self.magic, self.attributes), None
        )

    def _inner_section(self, max_decompressed_bytes: int) -> Section:
        outer = self._outer_section()
        if self.compression is Compression.ZSTD:
            outer.refuse(".attributes", 17, "zstd came only with magic 2")
        position = self._outer_position(outer)
        if position.value_length < 0:
            outer.refuse(".value", position.value_start, "a compressed message has no value")
        path, byte_offset = "Message.value", self.position + position.value_start
        plain = decompress(
            self.compression,
            outer.data[position.value_start : position.value_start + position.value_length],
            magic=self.magic,
            max_bytes=max_decompressed_bytes,
            path=path,
            byte_offset=byte_offset,
        )
        return Section(plain, path, byte_offset, was_compressed=True)

    def _inner_positions(self, inner: Section) -> list[MessagePosition]:
        append_time = self.timestamp if self.timestamp_type is TimestampType.LOG_APPEND_TIME else None
        messages = list(_inner_messages(inner))
        if not messages:
            inner.refuse("", 0, "no messages in a compressed message")
        base = self._inner_base_offset(inner, messages[-1])
        return [
            _position(inner, f"[{index}]", message._replace(offset=wrap_int64(base + message.offset)), append_time)
            for index, message in enumerate(messages)
        ]

    def _inner_base_offset(self, inner: Section, last: _Message) -> int:
        """The number to add to the offsets inside."""
        if self.magic == 0 or self.offset == 0:
            return 0
        if self.offset < last.offset:
            inner.refuse("", last.start, f"the last offset inside, {last.offset}, is past the wrapper's {self.offset}")
        return wrap_int64(self.offset - last.offset)


def read_legacy_batch(buffer: bytes | memoryview, position: int = 0) -> LegacyBatch:
    """The view of the message at `position`, which must be whole."""
    view = memoryview(buffer)
    return LegacyBatch(view, position, *_HEADER.unpack_from(view, position))


def _inner_messages(section: Section) -> Iterator[_Message]:
    data = section.data
    position = 0
    index = 0
    while len(data) - position >= _LOG_OVERHEAD_BYTES:
        (size,) = _INT32.unpack_from(data, position + 8)
        if size < _MESSAGE_SIZE_MIN:
            section.refuse(f"[{index}].message_size", position + 8, f"{size} bytes are fewer than any message has")
        end = position + _LOG_OVERHEAD_BYTES + size
        if end > len(data):
            return
        offset, _, crc, magic, attributes = _HEADER.unpack_from(data, position)
        if attributes & _CODEC_BITS:
            section.refuse(f"[{index}].attributes", position + 17, "a message inside a compressed one is compressed")
        yield _Message(position, end, offset, crc, magic, attributes)
        position = end
        index += 1


def _position(section: Section, name: str, message: _Message, append_time: int | None) -> MessagePosition:
    """The positions of a message's key and value. Magic 0 has no timestamp; only magic 1 uses the wrapper's."""
    position = message.start + _HEADER_BYTES
    timestamp = _NO_TIMESTAMP
    if message.magic != 0:
        if message.end - position < _INT64.size:
            section.refuse(f"{name}.timestamp", position, "the message ends before it")
        (timestamp,) = _INT64.unpack_from(section.data, position)
        position += _INT64.size
    key_start, key_length = _blob(section, f"{name}.key", position, message.end)
    value_start, value_length = _blob(section, f"{name}.value", key_start + max(key_length, 0), message.end)
    if message.magic == 1 and append_time is not None:
        timestamp = append_time
    return MessagePosition(message.offset, timestamp, key_start, key_length, value_start, value_length)


def _blob(section: Section, field: str, position: int, end: int) -> tuple[int, int]:
    def refuse(reason: str) -> NoReturn:
        section.refuse(f"{field}_length", position, reason)

    if end - position < _INT32.size:
        refuse("the message ends before it")
    length = max(_INT32.unpack_from(section.data, position)[0], -1)
    start = position + _INT32.size
    if length > end - start:
        refuse(f"{length} bytes where the message has {end - start} left")
    return start, length
