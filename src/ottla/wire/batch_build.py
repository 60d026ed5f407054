"""Builds and changes record batches.

Theory of operation. `BatchBuilder` collects records and makes one batch of them; `build_batch` does so for existing
records. An uncompressed result is byte for byte what Kafka's Java client writes for the same records. The other
functions change existing batches, and no more of them than necessary:

- `stamp`, the leader's work on a produced batch, in place: base offset and leader epoch are outside the checksum;
  timestamp type and largest timestamp are inside, so only changes of these need a new checksum.
- `recompress_batch` for a topic whose `compression.type` is not the producer's: the bytes of the records stay, their
  compression changes.
- `filter_batch` for compaction: kept records keep their bytes from the key on, even header keys that are not valid
  UTF-8. Offsets, sequences and producer stay in the header, also in an empty batch if no record is left.

Values that no batch can carry raise `WireError` without a byte offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ottla.wire.batch_record import Header, Record, encode_record, walk
from ottla.wire.batch_view import (
    ATTRIBUTES_POSITION,
    CODEC_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL_BIT,
    BatchView,
    Buffer,
    crc32c,
    read_header,
)
from ottla.wire.compress import DEFAULT_MAX_BYTES, Compression, compress
from ottla.wire.fault import WireError
from ottla.wire.varint import encode_varint, wrap_int64

__all__ = ["BatchBuilder", "build_batch", "filter_batch", "recompress_batch", "stamp"]

_KNOWN_BITS: Final = CODEC_BITS | LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_LEADER_EPOCH_POSITION: Final = 12
_CRC_POSITION: Final = 17
_MAX_TIMESTAMP_POSITION: Final = 35
_OFFSET_DELTA_MAX: Final = (1 << 31) - 1
_NO_TIMESTAMP: Final = -1


class BatchBuilder:
    """Collects records until the caller closes them into a batch with `build`.

    Offsets count up from `base_offset` unless given (they must increase). `delete_horizon_ms` marks a batch that the
    cleaner has processed; timestamps are then relative to it, else to the first record's, unless `base_timestamp` is
    given.
    """

    __slots__ = (
        "_count",
        "_delete_horizon_ms",
        "_last_offset",
        "_max_timestamp",
        "_parts",
        "_size",
        "base_offset",
        "base_timestamp",
    )

    def __init__(
        self, base_offset: int = 0, *, base_timestamp: int | None = None, delete_horizon_ms: int | None = None
    ) -> None:
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp if delete_horizon_ms is None else delete_horizon_ms
        self._delete_horizon_ms = delete_horizon_ms
        self._max_timestamp = _NO_TIMESTAMP
        self._last_offset = base_offset - 1
        self._parts: list[Buffer] = []
        self._count = 0
        self._size = HEADER_BYTES

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The present size of the batch without compression."""
        return self._size

    @property
    def next_offset(self) -> int:
        return self._last_offset + 1

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[Header] = (),
        *,
        offset: int | None = None,
    ) -> int:
        """Add a record; returns its size in bytes."""
        if offset is None:
            offset = self._last_offset + 1
        offset_delta = offset - self.base_offset
        if not 0 <= offset_delta <= _OFFSET_DELTA_MAX:
            raise WireError(
                "RecordBatch.records", None, f"offset {offset} is out of reach of base offset {self.base_offset}"
            )
        if self.base_timestamp is None:
            self.base_timestamp = timestamp
        part = encode_record(offset_delta, timestamp - self.base_timestamp, key, value, headers)
        self._parts.append(part)
        self._count += 1
        self._size += len(part)
        self._last_offset = offset
        self._max_timestamp = max(self._max_timestamp, timestamp)
        return len(part)

    def append_encoded(self, timestamp: int, data: Buffer, count: int) -> None:
        """Add so many records of one timestamp that are bytes already; their offsets go on from `next_offset`."""
        if self.base_timestamp is None:
            self.base_timestamp = timestamp
        self._parts.append(data)
        self._count += count
        self._size += len(data)
        self._last_offset += count
        self._max_timestamp = max(self._max_timestamp, timestamp)

    def build(
        self,
        *,
        compression: int = Compression.NONE,
        level: int | None = None,
        partition_leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        log_append_time: int | None = None,
        last_offset_delta: int | None = None,
        max_timestamp: int | None = None,
    ) -> bytes:
        """The batch. Without records it is an empty one, as after compaction, and never compressed.

        `log_append_time` sets that timestamp type and the largest timestamp; the records keep their own timestamps.
        `last_offset_delta` and `max_timestamp` are needed only where they do not follow from the records.
        """
        if not self._parts:
            compression, level = Compression.NONE, None
        if log_append_time is not None:
            max_timestamp = log_append_time
        attributes = (
            compression
            | (LOG_APPEND_TIME_BIT if log_append_time is not None else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (DELETE_HORIZON_BIT if self._delete_horizon_ms is not None else 0)
        )
        return _assemble(
            compress(compression, b"".join(self._parts), level=level),
            self.base_offset,
            partition_leader_epoch,
            attributes,
            max(self._last_offset - self.base_offset, 0) if last_offset_delta is None else last_offset_delta,
            _NO_TIMESTAMP if self.base_timestamp is None else self.base_timestamp,
            self._max_timestamp if max_timestamp is None else max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self._count,
        )


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    base_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    compression: int = Compression.NONE,
    level: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch of records with offsets.

    The base offset is the first one's unless given. See `BatchBuilder`.
    """
    records = list(records)
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    builder = BatchBuilder(base_offset, base_timestamp=base_timestamp, delete_horizon_ms=delete_horizon_ms)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)
    return builder.build(
        compression=compression,
        level=level,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        log_append_time=log_append_time,
        last_offset_delta=last_offset_delta,
        max_timestamp=max_timestamp,
    )


def _assemble(
    body: bytes,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    *rest: int,
) -> bytes:
    """Header, checksum and body; `rest` are the fields from the last offset delta on."""
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)
    try:
        header = bytearray(HEADER.pack(base_offset, length, partition_leader_epoch, 2, 0, attributes, *rest))
    except struct.error as error:
        raise WireError("RecordBatch", None, str(error)) from None
    checksum = crc32c(body, crc32c(memoryview(header)[ATTRIBUTES_POSITION:]))
    _CRC.pack_into(header, _CRC_POSITION, checksum)
    return b"".join((header, body))


def stamp(
    buffer: bytearray | memoryview,
    position: int = 0,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    log_append_time: int | None = None,
    max_timestamp: int | None = None,
) -> None:
    """Write the values that the leader assigns into the batch at `position` of a writable buffer.

    `log_append_time` gives it that timestamp type, regardless of the producer's. Without it the batch has create time,
    and `max_timestamp` corrects a wrong largest timestamp. The checksum is computed again only if one of them changed.
    """
    batch = read_header(buffer, position)
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + _LEADER_EPOCH_POSITION, partition_leader_epoch)
    if log_append_time is not None:
        type_bit, max_timestamp = LOG_APPEND_TIME_BIT, log_append_time
    else:
        type_bit = 0
    if max_timestamp is None:
        max_timestamp = batch.max_timestamp
    if batch.attributes & LOG_APPEND_TIME_BIT == type_bit and batch.max_timestamp == max_timestamp:
        return
    attributes = batch.attributes & _KNOWN_BITS & ~LOG_APPEND_TIME_BIT | type_bit
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, max_timestamp)
    _CRC.pack_into(buffer, position + _CRC_POSITION, batch.compute_crc())


def recompress_batch(
    batch: BatchView,
    compression: int,
    *,
    level: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_BYTES,
) -> bytes:
    """The same records in another codec."""
    if batch.record_count == 0:
        compression, level, plain = Compression.NONE, None, b""
    else:
        plain = bytes(batch.section(max_decompressed_bytes=max_decompressed_bytes).data)
    return _assemble(
        compress(compression, plain, level=level),
        batch.base_offset,
        batch.partition_leader_epoch,
        batch.attributes & _KNOWN_BITS & ~CODEC_BITS | compression,
        *_fields_from_last_offset_delta(batch, batch.base_timestamp, batch.max_timestamp, batch.record_count),
    )


def filter_batch(
    batch: BatchView,
    keep: Callable[[Record], bool],
    *,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_BYTES,
) -> bytes:
    """The batch with only the records that `keep` accepts, in the same codec.

    `delete_horizon_ms` sets the horizon of a batch that has none yet. The base timestamp becomes the horizon or the
    first kept record's timestamp, the largest one that of the kept records; of records with log append time that is
    the batch's own.
    """
    records = batch.records(max_decompressed_bytes=max_decompressed_bytes)
    kept = [keep(record) for record in records]
    horizon = batch.delete_horizon_ms if batch.delete_horizon_ms is not None else delete_horizon_ms
    if all(kept) and horizon == batch.delete_horizon_ms:
        return bytes(batch.data)
    timestamps = [record.timestamp for record, stays in zip(records, kept, strict=True) if stays]
    if not timestamps:
        return _emptied(batch)
    base_timestamp = timestamps[0] if horizon is None else horizon
    attributes = batch.attributes & _KNOWN_BITS | (DELETE_HORIZON_BIT if horizon is not None else 0)
    max_timestamp = batch.max_timestamp if attributes & LOG_APPEND_TIME_BIT else max(timestamps)
    body = _kept_records(batch, records, kept, base_timestamp, max_decompressed_bytes)
    return _assemble(
        compress(batch.compression, body, level=level),
        batch.base_offset,
        batch.partition_leader_epoch,
        attributes,
        *_fields_from_last_offset_delta(batch, base_timestamp, max_timestamp, len(timestamps)),
    )


def _emptied(batch: BatchView) -> bytes:
    return _assemble(
        b"",
        batch.base_offset,
        batch.partition_leader_epoch,
        batch.attributes & _KNOWN_BITS & ~(CODEC_BITS | DELETE_HORIZON_BIT),
        *_fields_from_last_offset_delta(batch, _NO_TIMESTAMP, batch.max_timestamp, 0),
    )


def _kept_records(
    batch: BatchView, records: list[Record], kept: list[bool], base_timestamp: int, max_decompressed_bytes: int
) -> bytes:
    """The kept records' bytes, with their timestamps relative to another base."""
    section = batch.section(max_decompressed_bytes=max_decompressed_bytes)
    parts: list[Buffer] = []
    places = walk(section, batch.record_count)
    for place, record, stays in zip(places, records, kept, strict=True):
        if stays:
            delta = encode_varint(wrap_int64(record.timestamp - base_timestamp))
            head = b"\x00" + delta + encode_varint(place.offset_delta)
            tail = section.data[place.key_length_start : place.end]
            parts += (encode_varint(len(head) + len(tail)), head, tail)
    return b"".join(parts)


def _fields_from_last_offset_delta(
    batch: BatchView, base_timestamp: int, max_timestamp: int, record_count: int
) -> tuple[int, ...]:
    return (
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
