"""Lookups in a log: the bytes from an offset on, the offset for a timestamp, the aborted transactions of a range.

A read is answered with a `FetchRegion`: a file, a position and a length. The bytes are batches as they are stored, from
the one that holds the offset on; the last of them may be cut. They go from the file to the socket without passing
through here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.log.errors import CorruptMessageError, OffsetOutOfRangeError
from ottla.log.files import LogFile
from ottla.log.leader_epochs import UNDEFINED_EPOCH
from ottla.log.scan import BatchPosition, read_batch, walk_headers
from ottla.log.segment import Segment
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import AnyBatch, BatchView
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from ottla.log.partition import Partition

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "EARLIEST_PENDING_UPLOAD",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "FetchRegion",
    "Isolation",
    "OffsetAndTimestamp",
    "aborted_transactions",
    "offset_for_timestamp",
    "read",
]

# What ListOffsets may ask for instead of a time.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_NO_TIMESTAMP: Final = -1
_NO_OFFSET: Final = -1


class Isolation(Enum):
    """How far a reader may read."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


class FetchRegion(msgspec.Struct, frozen=True, gc=False):
    """Where the bytes of a fetch are. `file` is None if there are none.

    A caller that sends them over more than one turn of the event loop pins the file.
    """

    file: LogFile | None
    position: int
    length: int
    base_offset: int
    """Of the first batch."""
    segment_base_offset: int
    is_first_batch_cut: bool = False
    """The first batch is larger than what was asked for, so nothing is sent."""
    aborted_transactions: tuple[AbortedTxn, ...] | None = None
    """Those that overlap the region; None unless committed data were asked for."""


class OffsetAndTimestamp(msgspec.Struct, frozen=True, gc=False):
    """An offset of the log, with the record's timestamp and leader epoch, or -1 where there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


def read(
    partition: Partition,
    offset: int,
    max_bytes: int,
    isolation: Isolation,
    *,
    min_one_batch: bool,
    hint: tuple[Segment, int] | None = None,
) -> FetchRegion:
    if not partition.log_start_offset <= offset <= partition.log_end_offset:
        raise OffsetOutOfRangeError(
            f"offset {offset} is not within {partition.log_start_offset} to {partition.log_end_offset}"
        )
    limit_offset = _limit_offset(partition, isolation)
    committed = isolation is Isolation.TXN_COMMITTED
    if offset < limit_offset:
        limit_segment, limit_position = partition.position_of_limit(limit_offset)
        for index in range(max(partition.segment_index(offset), 0), len(partition.segments)):
            segment = partition.segments[index]
            start = hint[1] if hint is not None and hint[0] is segment else None
            found = segment.find_batch(offset, start)
            if found is None:
                continue  # all of it was compacted away; the next segment has what follows
            end = limit_position if segment is limit_segment else segment.size_bytes
            if segment.base_offset > limit_segment.base_offset or found.position >= end:
                break
            region = _region(segment, found, end, max_bytes, min_one_batch=min_one_batch)
            return _with_aborted(partition, index, region, offset) if committed else region
    active = partition.active_segment
    aborted = () if committed else None
    return FetchRegion(None, active.size_bytes, 0, offset, active.base_offset, aborted_transactions=aborted)


def _limit_offset(partition: Partition, isolation: Isolation) -> int:
    if isolation is Isolation.LOG_END:
        return partition.log_end_offset
    if isolation is Isolation.HIGH_WATERMARK:
        return partition.high_watermark
    return partition.last_stable_offset


def _region(segment: Segment, batch: BatchPosition, end: int, max_bytes: int, *, min_one_batch: bool) -> FetchRegion:
    position = batch.position
    if batch.size_bytes > max_bytes:
        if not min_one_batch:
            return FetchRegion(None, position, 0, batch.base_offset, segment.base_offset, is_first_batch_cut=True)
        max_bytes = batch.size_bytes
    length = min(max_bytes, end - position)
    return FetchRegion(segment.file, position, length, batch.base_offset, segment.base_offset)


# --- aborted transactions ---------------------------------------------------------------------------------------------


def _with_aborted(partition: Partition, index: int, region: FetchRegion, offset: int) -> FetchRegion:
    if region.length == 0:
        return msgspec.structs.replace(region, aborted_transactions=())
    segment = partition.segments[index]
    past = segment.offset_index.first_past(region.position + region.length)
    if past is not None:
        end_offset = segment.base_offset + past
    elif index + 1 < len(partition.segments):
        end_offset = partition.segments[index + 1].base_offset
    else:
        end_offset = partition.log_end_offset
    found = tuple(_collect(partition, index, offset, end_offset))
    return msgspec.structs.replace(region, aborted_transactions=found)


def _collect(partition: Partition, index: int, offset: int, end_offset: int) -> Iterator[AbortedTxn]:
    """From a segment on: a marker lies behind the data it is about."""
    for following in range(index, len(partition.segments)):
        found, is_complete = partition.segments[following].txn_index.collect(offset, end_offset)
        yield from found
        if is_complete:
            return


def aborted_transactions(partition: Partition, first_offset: int, end_offset: int) -> list[AbortedTxn]:
    index = max(partition.segment_index(first_offset), 0)
    return list(_collect(partition, index, first_offset, end_offset))


# --- times ------------------------------------------------------------------------------------------------------------


def offset_for_timestamp(partition: Partition, timestamp: int) -> OffsetAndTimestamp | None:
    if timestamp == LATEST:
        return OffsetAndTimestamp(partition.log_end_offset, _NO_TIMESTAMP, partition.epochs.latest_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        earliest = partition.epochs.earliest()
        is_known = earliest is not None and earliest[1] <= partition.log_start_offset
        epoch = earliest[0] if earliest is not None and is_known else UNDEFINED_EPOCH
        return OffsetAndTimestamp(partition.log_start_offset, _NO_TIMESTAMP, epoch)
    if timestamp == MAX_TIMESTAMP:
        return _newest(partition)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return OffsetAndTimestamp(_NO_OFFSET, _NO_TIMESTAMP, UNDEFINED_EPOCH)  # there is no second tier
    return _first_not_older(partition, timestamp)


def _newest(partition: Partition) -> OffsetAndTimestamp | None:
    """The first record that has the largest timestamp of all."""
    segment = max(partition.segments, key=Segment.max_timestamp)  # of equal ones the first
    timestamp = segment.max_timestamp()
    if timestamp < 0:
        return None
    position = segment.offset_index.lookup(segment.max_timestamp_offset() - segment.base_offset)[1]
    for found, batch in _headers(segment, position):
        if batch.max_timestamp == timestamp:
            return _first_record(segment, found, batch, timestamp, 0)
    return None


def _first_not_older(partition: Partition, timestamp: int) -> OffsetAndTimestamp | None:
    start_offset = partition.log_start_offset
    for index in range(max(partition.segment_index(start_offset), 0), len(partition.segments)):
        segment = partition.segments[index]
        newest = segment.max_timestamp()
        if newest < 0 and segment.size_bytes:
            newest = segment.modified_ms()
        if newest >= timestamp:
            found = _first_not_older_in(segment, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _first_not_older_in(segment: Segment, timestamp: int, start_offset: int) -> OffsetAndTimestamp | None:
    relative = max(segment.time_index.lookup(timestamp)[1], start_offset - segment.base_offset)
    for position, batch in _headers(segment, segment.offset_index.lookup(relative)[1]):
        if batch.max_timestamp >= timestamp:
            found = _first_record(segment, position, batch, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _headers(segment: Segment, position: int) -> Iterator[tuple[int, AnyBatch]]:
    return walk_headers(segment.file.handle(), position, segment.size_bytes)


def _first_record(
    segment: Segment, position: int, batch: AnyBatch, timestamp: int, start_offset: int
) -> OffsetAndTimestamp | None:
    """The first record of a batch that is neither older nor below an offset."""
    try:
        records = read_batch(segment.file.handle(), position, batch.size_bytes).records(copy=False)
    except WireError as error:
        raise CorruptMessageError(f"{segment.file.path}, position {position}: {error}") from error
    epoch = batch.partition_leader_epoch if isinstance(batch, BatchView) else UNDEFINED_EPOCH
    for record in records:
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return OffsetAndTimestamp(record.offset, record.timestamp, epoch)
    return None
