"""Validates batches and assigns their offsets: the first half of an append.

A leader accepts one sound batch from a client and changes as little of it as possible: base offset and leader epoch,
which are not part of the checksum, and where the topic asks for it the timestamps and the compression. Everything else
is stored as it came. A batch of a coordinator was built by this node a moment ago, so it is sound: of it only the size
and the producer's state are checked.

Records are read only where the header is not enough: in compacted topics (each record needs a key), when the largest
timestamp is out of bounds, when old timestamps are bounded, and with `ottla.validate.records`. Apache Kafka reads each
record of each batch; ottla trusts the header that its largest timestamp is that of the records, and that offsets in a
batch increase by one.

The checks run in Apache Kafka's order, because the first one that fails decides the error. The producer's state is
checked last, before anything changes.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.log.config import LONG_MAX, LogConfig
from ottla.log.errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    LogError,
    MessageTooLargeError,
    OffsetsOutOfOrderError,
    RecordError,
    RecordListTooLargeError,
    UnexpectedAppendOffsetError,
    UnsupportedCompressionTypeError,
)
from ottla.log.producer_entry import BatchMetadata
from ottla.log.producer_state import Origin, Verification
from ottla.wire.batch import (
    AnyBatch,
    BatchView,
    Compression,
    Record,
    read_header,
    recompress_batch,
    split_batches,
    stamp,
)
from ottla.wire.batch_view import (
    ATTRIBUTES_POSITION,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL_BIT,
    crc32c,
)
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from ottla.log.partition import Partition

__all__ = ["NOT_VERIFIED", "AppendInfo", "stage_as_coordinator", "stage_as_leader", "stage_verbatim"]

NOT_VERIFIED: Final = Verification()
_NO_TIMESTAMP: Final = -1
_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_LEADER_EPOCH_POSITION: Final = 12
_CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_SHOWN_ERRORS_MAX: Final = 3


class AppendInfo(msgspec.Struct, frozen=True, gc=False):
    """The result of an append. It is written once `Partition.log_end_offset` is past `last_offset`."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int
    """-1 unless the topic has log append time; of a repeated batch, the largest timestamp it had."""
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool = False


class _Ready(msgspec.Struct, gc=False):
    """A validated batch in a writable buffer, and the fields that are still to be set in it."""

    batch: BatchView
    data: memoryview
    max_timestamp: int
    log_append_time: int | None
    is_header_kept: bool
    """Whether timestamps and type stay as they are."""


# --- as leader --------------------------------------------------------------------------------------------------------


def stage_as_leader(
    partition: Partition,
    records: bytes | bytearray | memoryview,
    leader_epoch: int,
    now_ms: int,
    verification: Verification,
) -> AppendInfo:
    records = memoryview(records)
    if records.readonly:
        records = memoryview(bytearray(records))
    info = _stage_usual(partition, records, leader_epoch, now_ms, verification)
    if info is not None:
        return info
    ready = _validate(_client_batch(records), partition.config, now_ms)
    return _stage(partition, ready, leader_epoch, now_ms, Origin.CLIENT, verification)


def stage_as_coordinator(
    partition: Partition, batch: bytearray, leader_epoch: int, now_ms: int, verification: Verification
) -> AppendInfo:
    view = memoryview(batch)
    built = BatchView(view, 0, *HEADER.unpack_from(view))
    _check_size(len(view), partition.config)
    ready = _in_form_of_topic(built, built.max_timestamp, partition.config, now_ms)
    return _stage(partition, ready, leader_epoch, now_ms, Origin.COORDINATOR, verification)


def _stage(
    partition: Partition, ready: _Ready, leader_epoch: int, now_ms: int, origin: Origin, verification: Verification
) -> AppendInfo:
    """Check the producer of a validated batch, assign its offsets and keep it for the next write."""
    batch, max_timestamp, size_bytes = ready.batch, ready.max_timestamp, len(ready.data)
    if size_bytes > partition.config.segment_bytes:
        raise RecordListTooLargeError(f"{size_bytes} bytes do not fit in a segment of {partition.config.segment_bytes}")
    if batch.producer_id >= 0:
        duplicate = partition.producers.check(batch, origin, verification)
        if duplicate is not None:
            return _repeated(partition, duplicate, size_bytes)
    base_offset = partition.next_offset
    last_offset = base_offset + batch.last_offset_delta
    partition.prepare_segment(size_bytes, max_timestamp, base_offset, last_offset, now_ms)
    partition.epochs.assign(leader_epoch, base_offset)
    _stamp(ready, base_offset, leader_epoch)
    if batch.producer_id >= 0:
        _note_producer(partition, batch, base_offset, max_timestamp)
    partition.gather(ready.data, ((last_offset, max_timestamp, size_bytes),), last_offset + 1)
    append_time = _NO_TIMESTAMP if ready.log_append_time is None else now_ms
    return AppendInfo(base_offset, last_offset, max_timestamp, append_time, partition.log_start_offset, size_bytes)


def _repeated(partition: Partition, batch: BatchMetadata, size_bytes: int) -> AppendInfo:
    first, last, time = batch.first_offset, batch.last_offset, batch.timestamp
    return AppendInfo(first, last, time, time, partition.log_start_offset, size_bytes, is_duplicate=True)


def _stage_usual(
    partition: Partition,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    verification: Verification,
) -> AppendInfo | None:
    """Stage the usual batch of a client; None for any other, which the other functions then handle.

    It is one long function because a call for each check would take 50 % longer. It refuses a batch only for
    the producer's state, which is checked last.
    """
    config = partition.config
    size_bytes = len(records)
    if not config.takes_batches_as_they_are or size_bytes < HEADER_BYTES:
        return None
    batch = BatchView(records, 0, *HEADER.unpack_from(records))
    codec, offset_delta, max_timestamp = batch.attributes & CODEC_BITS, batch.last_offset_delta, batch.max_timestamp
    if not (
        batch.base_offset == 0
        and batch.magic == 2
        and batch.batch_length + LOG_OVERHEAD_BYTES == size_bytes <= min(config.max_message_bytes, config.segment_bytes)
        and batch.attributes & ~TRANSACTIONAL_BIT == codec <= Compression.ZSTD
        and batch.record_count == offset_delta + 1 > 0
        and max_timestamp <= now_ms + config.message_timestamp_after_max_ms
        and crc32c(records[ATTRIBUTES_POSITION:]) == batch.crc
        and (batch.base_sequence >= 0 or batch.producer_id < 0)
    ):
        return None
    if batch.producer_id >= 0:
        duplicate = partition.producers.check(batch, Origin.CLIENT, verification)
        if duplicate is not None:
            return _repeated(partition, duplicate, size_bytes)
    base_offset = partition.next_offset
    last_offset = base_offset + offset_delta
    partition.prepare_segment(size_bytes, max_timestamp, base_offset, last_offset, now_ms)
    partition.epochs.assign(leader_epoch, base_offset)
    _BASE_OFFSET.pack_into(records, 0, base_offset)
    _LEADER_EPOCH.pack_into(records, _LEADER_EPOCH_POSITION, leader_epoch)
    if batch.producer_id >= 0:
        _note_producer(partition, batch, base_offset, max_timestamp)
    partition.gather(records, ((last_offset, max_timestamp, size_bytes),), last_offset + 1)
    return AppendInfo(base_offset, last_offset, max_timestamp, _NO_TIMESTAMP, partition.log_start_offset, size_bytes)


def _stamp(one: _Ready, base_offset: int, leader_epoch: int) -> None:
    if one.is_header_kept:
        _BASE_OFFSET.pack_into(one.data, 0, base_offset)
        _LEADER_EPOCH.pack_into(one.data, _LEADER_EPOCH_POSITION, leader_epoch)
        return
    stamp(
        one.data,
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        log_append_time=one.log_append_time,
        max_timestamp=one.max_timestamp,
    )


def _client_batch(view: memoryview) -> BatchView:
    """The one batch of a produce request."""
    try:
        batch = read_header(view)
    except WireError as error:
        raise _refused_records(view, error) from error
    if batch.size_bytes != len(view):
        # Bytes that are no batch may follow; another batch may not, and this one must be whole.
        if batch.size_bytes > len(view) or len(list(split_batches(view[batch.size_bytes :]))):
            raise InvalidRecordError("a produce request holds exactly one whole batch for a partition")
        batch = read_header(view[: batch.size_bytes])
    if batch.base_offset != 0:
        raise InvalidRecordError(f"the base offset of a produced batch is 0, not {batch.base_offset}")
    return batch


def _refused_records(view: memoryview, error: WireError) -> LogError:
    """The error for records that are no batch of magic 2."""
    if error.path == "RecordBatch.batch_length":
        return CorruptMessageError(str(error))
    return InvalidRecordError(f"{len(view)} bytes are no batch of magic 2: {error}")


def _validate(batch: BatchView, config: LogConfig, now_ms: int) -> _Ready:
    """Check the batch of a client."""
    _check_size(batch.size_bytes, config)
    if not batch.is_valid:
        raise CorruptMessageError(f"the checksum {batch.crc:#010x} is not that of the batch")
    _check_client_header(batch)
    return _in_form_of_topic(batch, _check_records(batch, config, now_ms), config, now_ms)


def _in_form_of_topic(batch: BatchView, max_timestamp: int, config: LogConfig, now_ms: int) -> _Ready:
    """A sound batch with the compression and the timestamps that its topic wants."""
    data = batch.data
    if config.compression_type != "producer" or batch.attributes & CODEC_BITS > Compression.ZSTD:
        data, batch = _in_compression_of(batch, config)
    if config.has_log_append_time:
        return _Ready(batch, data, now_ms, now_ms, is_header_kept=False)
    is_header_kept = not batch.attributes & LOG_APPEND_TIME_BIT and max_timestamp == batch.max_timestamp
    return _Ready(batch, data, max_timestamp, None, is_header_kept)


def _check_size(size_bytes: int, config: LogConfig) -> None:
    if size_bytes > config.max_message_bytes:
        raise MessageTooLargeError(
            f"the batch has {size_bytes} bytes, max.message.bytes allows {config.max_message_bytes}"
        )


def _check_client_header(batch: BatchView) -> None:
    count = batch.record_count
    if count <= 0 or batch.last_offset_delta + 1 != count:
        raise InvalidRecordError(
            f"the batch counts {count} records; its last offset lies {batch.last_offset_delta} past its first"
        )
    if batch.attributes & CONTROL_BIT:
        raise InvalidRecordError("clients may not write control records")
    if batch.producer_id > -1 and batch.base_sequence < 0:
        raise InvalidRecordError(f"the batch of producer {batch.producer_id} has no sequence number")


# --- what only the records tell ---------------------------------------------------------------------------------------


def _check_records(batch: BatchView, config: LogConfig, now_ms: int) -> int:
    """Check keys and timestamps, of each record if necessary; returns the largest timestamp."""
    if batch.attributes & LOG_APPEND_TIME_BIT and (config.has_log_append_time or batch.max_timestamp < 0):
        reason = "a producer may not set the timestamp type LogAppendTime"
        raise InvalidTimestampError(reason, [RecordError(index, reason) for index in range(batch.record_count)])
    is_timely = config.has_log_append_time or (
        batch.max_timestamp <= now_ms + config.message_timestamp_after_max_ms
        and config.message_timestamp_before_max_ms == LONG_MAX
    )
    if (is_timely and not config.looks_at_records) or batch.attributes & CONTROL_BIT:
        return batch.max_timestamp
    try:
        records = batch.records(copy=False)
    except WireError as error:
        raise InvalidRecordError(str(error)) from error
    if config.is_compacted:
        _check_keys(records)
    if config.has_log_append_time:
        return batch.max_timestamp
    _check_timestamps(records, config, now_ms)
    return max((record.timestamp for record in records), default=batch.max_timestamp)


def _check_keys(records: Sequence[Record]) -> None:
    errors = [
        RecordError(index, "a record without a key has no place in a compacted topic")
        for index, record in enumerate(records)
        if record.key is None
    ]
    if errors:
        raise InvalidRecordError(_summary(errors, len(records)), errors)


def _check_timestamps(records: Sequence[Record], config: LogConfig, now_ms: int) -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    errors = [
        RecordError(index, f"timestamp {record.timestamp} is not within [{earliest}, {latest}]")
        for index, record in enumerate(records)
        if record.timestamp != _NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    ]
    if errors:
        raise InvalidTimestampError(_summary(errors, len(records)), errors)


def _summary(errors: list[RecordError], count: int) -> str:
    shown = "; ".join(f"record {error.batch_index}: {error.message}" for error in errors[:_SHOWN_ERRORS_MAX])
    return f"{len(errors)} of {count} records were refused, among them {shown}"


def _in_compression_of(batch: BatchView, config: LogConfig) -> tuple[memoryview, BatchView]:
    """The batch in the codec that the topic wants."""
    try:
        codec = batch.compression
        wanted = _CODECS.get(config.compression_type, codec)
        if codec is wanted or batch.is_control:
            return batch.data, batch
        data = memoryview(bytearray(recompress_batch(batch, wanted, level=_level(wanted, config))))
    except WireError as error:
        if error.path == "RecordBatch.attributes":
            raise UnsupportedCompressionTypeError(str(error)) from error
        raise InvalidRecordError(str(error)) from error
    _check_size(len(data), config)
    return data, read_header(data)


def _level(codec: Compression, config: LogConfig) -> int | None:
    levels = {
        Compression.GZIP: config.compression_gzip_level,
        Compression.LZ4: config.compression_lz4_level,
        Compression.ZSTD: config.compression_zstd_level,
    }
    level = levels.get(codec)
    return None if codec is Compression.GZIP and level == -1 else level


# --- producers --------------------------------------------------------------------------------------------------------


def _note_producer(partition: Partition, batch: BatchView, base_offset: int, max_timestamp: int) -> None:
    aborted = partition.producers.add(batch, base_offset, max_timestamp)
    if aborted is not None:
        partition.active_segment.txn_index.append(aborted)


# --- as follower ------------------------------------------------------------------------------------------------------


def stage_verbatim(
    partition: Partition, records: bytes | bytearray | memoryview, leader_epoch: int, now_ms: int, origin: Origin
) -> AppendInfo | None:
    batches = _replicated_batches(records, leader_epoch, origin)
    if not batches:
        return None
    first_offset, last_offset = _first_offset(batches[0]), batches[-1].last_offset
    if first_offset < partition.next_offset:
        if not partition.log_start_offset == partition.next_offset <= last_offset:
            raise UnexpectedAppendOffsetError(
                f"batches from offset {first_offset} on cannot follow a log that ends at {partition.next_offset}"
            )
        # An empty log, whose start lies inside a batch: the leader has deleted the batch's first records.
        partition.truncate_fully(first_offset, now_ms, partition.log_start_offset)
    data, at = memoryview(records), 0
    for group in _in_segments(batches, partition.config.segment_bytes):
        end = at + sum(batch.size_bytes for batch in group)
        _stage_in_segment(partition, group, data[at:end], now_ms)
        at = end
    max_timestamp = max(batch.max_timestamp for batch in batches)
    return AppendInfo(first_offset, last_offset, max_timestamp, _NO_TIMESTAMP, partition.log_start_offset, at)


def _in_segments(batches: Sequence[AnyBatch], segment_bytes: int) -> Iterator[list[AnyBatch]]:
    """The batches in groups that fit in a segment. A follower takes what its leader has, even if that was written when
    segments were larger: a batch that does not fit gets a segment of its own."""
    group: list[AnyBatch] = []
    size_bytes = 0
    for batch in batches:
        if group and size_bytes + batch.size_bytes > segment_bytes:
            yield group
            group, size_bytes = [], 0
        group.append(batch)
        size_bytes += batch.size_bytes
    yield group


def _stage_in_segment(partition: Partition, batches: Sequence[AnyBatch], data: memoryview, now_ms: int) -> None:
    max_timestamp = max(batch.max_timestamp for batch in batches)
    size_bytes = min(len(data), partition.config.segment_bytes)
    partition.prepare_segment(size_bytes, max_timestamp, _first_offset(batches[0]), batches[-1].last_offset, now_ms)
    for batch in batches:
        _note_replicated(partition, batch)
    indexed = [(batch.last_offset, batch.max_timestamp, batch.size_bytes) for batch in batches]
    partition.gather(data, indexed, batches[-1].last_offset + 1)


def _first_offset(batch: AnyBatch) -> int:
    try:
        return batch.base_offset
    except WireError as error:  # of a compressed message of magic 0 or 1 only its inside tells
        raise CorruptMessageError(str(error)) from error


def _replicated_batches(records: bytes | bytearray | memoryview, leader_epoch: int, origin: Origin) -> list[AnyBatch]:
    """The sound batches up to the first of a later leader; offsets must rise."""
    batches: list[AnyBatch] = []
    last_offset = -1
    try:
        for batch in split_batches(records):
            if origin is Origin.RAFT_LEADER:  # this node has built it
                assert isinstance(batch, BatchView), "only batches of magic 2 are written"
                assert batch.partition_leader_epoch == leader_epoch, "the quorum's leader sets the epoch itself"
            elif isinstance(batch, BatchView) and batch.partition_leader_epoch > leader_epoch:
                break
            else:
                batch.check_crc()
            if batch.last_offset <= last_offset:
                raise OffsetsOutOfOrderError(f"offset {batch.last_offset} follows {last_offset}")
            last_offset = batch.last_offset
            batches.append(batch)
    except WireError as error:
        raise CorruptMessageError(str(error)) from error
    return batches


def _note_replicated(partition: Partition, batch: AnyBatch) -> None:
    if not isinstance(batch, BatchView):
        partition.epochs.clear()  # such a batch tells no epoch, so what the older entries say is not true any more
        return
    if batch.partition_leader_epoch >= 0:
        partition.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
    if batch.producer_id > -1:
        with contextlib.suppress(WireError):  # a control batch that is no marker: recovery leaves it, too
            _note_producer(partition, batch, batch.base_offset, batch.max_timestamp)
