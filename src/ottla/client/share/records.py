"""What a share consumer is given: ranges of acquired offsets, and the stored batches around them.

An answer to ShareFetch carries whole batches, as they lie in the log. They hold more than the member has acquired, and
less: offsets that were compacted away and markers of transactions are acquired like records, though there is nothing
to process. `settle` sorts this out by the headers of the batches alone, so that records are decoded only when somebody
looks at them, and only once:

===================================  ===================================================================================
an acquired offset                   becomes
===================================  ===================================================================================
has a record                         part of an `Acquired`
lies in a batch, and has no record   a gap (type 0): the broker archives it
lies in a batch with a wrong CRC     rejected (type 3), as Java's consumer does
lies behind where the answer is cut  released (type 2): nothing is known of it, so somebody has to get it again
===================================  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.metadata import TopicPartition
from ottla.wire import WireError
from ottla.wire.acknowledge_type import AcknowledgeType
from ottla.wire.batch import AnyBatch, BatchView, Header, TimestampType, split_batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ottla.wire.columns import BatchColumns, Columns

__all__ = ["AcknowledgeType", "Acquired", "AcquiredRange", "Settled", "ShareRecord", "settle"]


class AcquiredRange(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int
    """How often these records have been handed out, this time included."""


class ShareRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    leader_epoch: int
    delivery_count: int
    """1 for the first time; a record that comes again and again makes its consumers fail."""


@dataclass(frozen=True, slots=True, eq=False)
class Acquired:
    """Records of one partition that this member holds, until it acknowledges them or their locks end."""

    at: TopicPartition
    topic_id: bytes
    node_id: int
    """The leader that handed them out, and that has to hear what became of them."""
    ranges: tuple[AcquiredRange, ...]
    """The offsets of the records, ascending; others in `data` are not ours."""
    data: bytes | memoryview
    lock_timeout_ms: int
    """How long the locks last."""
    acquired_at_s: float = 0.0
    """When the answer came, on the monotonic clock."""

    @property
    def lock_ends_at_s(self) -> float:
        """When others get them, unless they are acknowledged or renewed before; the leader's clock decides."""
        return self.acquired_at_s + self.lock_timeout_ms / 1000 if self.lock_timeout_ms > 0 else inf

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last, _ in self.ranges)

    def batches(self) -> Iterator[AnyBatch]:
        """The stored batches that have a record of ours; they may have others as well."""
        if self.ranges:
            first, last = self.ranges[0].first_offset, self.ranges[-1].last_offset
            for batch in split_batches(self.data):
                if batch.last_offset >= first and batch.base_offset <= last and not _is_control(batch):
                    yield batch

    def records(self) -> Iterator[ShareRecord]:
        """The records; WireError if one cannot be read although its batch has the right checksum."""
        ranges = iter(self.ranges)
        first, last, count = next(ranges, (0, -1, 0))
        for batch in self.batches():
            epoch = batch.partition_leader_epoch if isinstance(batch, BatchView) else -1
            kind = batch.timestamp_type
            for each in batch.records():  # which copies, so that keys and values are bytes
                offset = each.offset
                while offset > last:
                    found = next(ranges, None)
                    if found is None:
                        return
                    first, last, count = found
                if offset >= first:
                    yield ShareRecord(
                        *self.at,
                        offset,
                        each.timestamp,
                        kind,
                        each.key,  # type: ignore[arg-type]
                        each.value,  # type: ignore[arg-type]
                        each.headers,
                        epoch,
                        count,
                    )

    def columns(self) -> tuple[Columns, NDArray[np.int64]]:
        """All records at once, and how often each was delivered: 0 for a record that is not ours and must be skipped.

        Some ten times as quick as `records`, with numpy and numba.
        """
        import numpy as np

        from ottla.wire.columns import decode_columns

        firsts, lasts, counts = np.array(self.ranges, np.int64).reshape(-1, 3).T

        def ours(batches: BatchColumns) -> NDArray[np.bool_]:
            found = np.searchsorted(lasts, batches.field("base_offset"))
            has_range = np.append(firsts, np.iinfo(np.int64).max)[found] <= batches.last_offset
            mine: NDArray[np.bool_] = has_range & ~batches.is_control
            return mine

        columns = decode_columns(self.data, check_crc=False, keep_batches=ours)
        tp = np.searchsorted(lasts, columns.offset)
        begins = np.append(firsts, np.iinfo(np.int64).max)[tp]
        return columns, np.where(begins <= columns.offset, np.append(counts, 0)[tp], 0)

    def before(self, offset: int) -> Acquired:
        """What comes before an offset."""
        cut = (AcquiredRange(first, min(last, offset - 1), count) for first, last, count in self.ranges)
        return replace(self, ranges=tuple(each for each in cut if each.first_offset <= each.last_offset))

    def since(self, offset: int) -> Acquired:
        """What begins at an offset."""
        cut = (AcquiredRange(max(first, offset), last, count) for first, last, count in self.ranges)
        return replace(self, ranges=tuple(each for each in cut if each.first_offset <= each.last_offset))


class Settled(NamedTuple):
    """What the acquired offsets of one partition turned out to be."""

    records: tuple[AcquiredRange, ...]
    gaps: tuple[AcquiredRange, ...]
    damaged: tuple[AcquiredRange, ...]
    unknown: tuple[AcquiredRange, ...]


_Interval = tuple[int, int]
_OFFSET_MAX = (1 << 63) - 1


def settle(acquired: Iterable[AcquiredRange], data: bytes | memoryview) -> Settled:
    """Sort acquired offsets by what the stored batches have at them."""
    present: list[_Interval] = []
    damaged: list[_Interval] = []
    unread_from = _walk(data, present, damaged)
    ranges = sorted(acquired)
    bad, ranges = _divide(ranges, damaged)
    good, ranges = _divide(ranges, present)
    unknown, gaps = _divide(ranges, [] if unread_from is None else [(unread_from, _OFFSET_MAX)])
    return Settled(tuple(good), tuple(gaps), tuple(bad), tuple(unknown))


def _walk(data: bytes | memoryview, present: list[_Interval], damaged: list[_Interval]) -> int | None:
    """Note where batches have records, and which are damaged; gives the offset from which on nothing can be read."""
    size = 0
    next_offset = 0
    try:
        for batch in split_batches(data):
            size += batch.size_bytes
            next_offset = batch.next_offset
            if _is_damaged(batch):
                damaged.append((batch.base_offset, batch.last_offset))
            elif not _is_control(batch):
                for interval in _offsets_in(batch):
                    _extend(present, interval)
    except WireError:
        return next_offset
    return None if size == len(data) else next_offset


def _is_damaged(batch: AnyBatch) -> bool:
    try:
        batch.check_crc()
    except WireError:
        return True
    return False


def _is_control(batch: AnyBatch) -> bool:
    return isinstance(batch, BatchView) and batch.is_control


def _offsets_in(batch: AnyBatch) -> Iterator[_Interval]:
    if isinstance(batch, BatchView) and batch.record_count == batch.last_offset_delta + 1:
        yield batch.base_offset, batch.last_offset  # nothing was compacted away
        return
    try:
        for record in batch.records():
            yield record.offset, record.offset
    except WireError:
        yield batch.base_offset, batch.last_offset  # who reads it will be told


def _extend(intervals: list[_Interval], more: _Interval) -> None:
    if intervals and intervals[-1][1] + 1 == more[0]:
        intervals[-1] = (intervals[-1][0], more[1])
    else:
        intervals.append(more)


def _divide(
    ranges: Sequence[AcquiredRange], intervals: Sequence[_Interval]
) -> tuple[list[AcquiredRange], list[AcquiredRange]]:
    """The parts of the ranges inside the intervals, and those outside; all of them ascending."""
    if not intervals:
        return [], list(ranges)
    inside: list[AcquiredRange] = []
    outside: list[AcquiredRange] = []
    tp = 0
    for first, last, count in ranges:
        while first <= last:
            while tp < len(intervals) and intervals[tp][1] < first:
                tp += 1
            if tp == len(intervals) or intervals[tp][0] > last:
                outside.append(AcquiredRange(first, last, count))
                break
            low, high = intervals[tp]
            if low > first:
                outside.append(AcquiredRange(first, low - 1, count))
            end = min(high, last)
            inside.append(AcquiredRange(max(low, first), end, count))
            first = end + 1
    return inside, outside
