"""The plan of the driver's runner: the ranges of each batch, their acknowledgement, and owed ranges.

Only the first fetch of a batch waits for records. The others take what is there: a batch that is complete, because all
locks of the group are taken, must not wait for records that cannot come before it is acknowledged.

Nothing here connects to a cluster or uses pyspark: `ShareMember` is the port to the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple, Protocol

from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import Acquisition, ShareOffset, TopicIdPartition
from ottla.spark.share.ranges import Range, cut, join, subtract
from ottla.wire.acknowledge_type import AcknowledgeType

__all__ = ["Acknowledgement", "AcquiredPartition", "Limits", "ShareMember", "SharePlan", "Task", "tasks_of"]

RANGES_MAX: Final = 20_000
"""More ranges would make the offset a large file, which Spark writes and reads in every batch."""
CHECK_EVERY_MS: Final = 60_000
BEYOND_MS: Final = 1_000
"""How long a query that is to stop goes on fetching if only records after its end arrive."""


class Acknowledgement(NamedTuple):
    first: int
    last: int
    kind: int


class AcquiredPartition(NamedTuple):
    """The acquired records of one partition."""

    tp: TopicIdPartition
    topic: str
    ranges: Sequence[Acquisition]
    size_bytes: int = 0


class Limits(NamedTuple):
    """The limits of a batch, beside its number of records."""

    max_bytes: float = inf
    acquire_time_ms: float = inf


UNLIMITED: Final = Limits()


class ShareMember(Protocol):
    """The member of the group; tests have a fake."""

    def acquire(self, max_records: int, *, waits: bool = True) -> list[AcquiredPartition]:
        """Acquire records with one fetch; `waits` if it may wait for them."""

    def settle(self, acknowledgements: Mapping[TopicIdPartition, Sequence[Acknowledgement]]) -> set[TopicIdPartition]:
        """Acknowledge held ranges; returns the partitions for which that is known to be stored."""

    def starts(self, partitions: Iterable[TopicIdPartition]) -> Mapping[TopicIdPartition, int]:
        """The start offsets of share partitions: everything before is done. If a topic is gone, the largest offset."""


class Task(NamedTuple):
    """Records of one partition that one task reads."""

    tp: TopicIdPartition
    topic: str
    ranges: tuple[Acquisition, ...]
    seq: int

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges)


class SharePlan:
    def __init__(
        self,
        member: ShareMember,
        group: str,
        decisions: Decisions,
        now_ms: Callable[[], float] = lambda: 0.0,
        limits: Limits = UNLIMITED,
    ) -> None:
        self._member = member
        self._group = group
        self._decisions = decisions
        self._limits = limits
        self._now_ms = now_ms
        self._checked_at_ms = float("-inf")
        self._mine: dict[int, ShareOffset] = {}
        """Batches that this process has acquired and not acknowledged yet."""
        self._settled_seq = 0
        self._owed: dict[TopicIdPartition, list[Range]] = {}
        self._rejected: dict[TopicIdPartition, dict[int, int]] = {}
        """Owed records that are to be rejected when they are delivered again."""
        self._targets: Mapping[TopicIdPartition, int] | None = None

    def stop_at(self, targets: Mapping[TopicIdPartition, int]) -> None:
        """Take no records at or after these offsets."""
        self._targets = targets

    # --- settling -----------------------------------------------------------------------------------------------------

    def settle(self, done: ShareOffset) -> None:
        """Everything up to here is in Spark's commit log: acknowledge it, or remember that it is owed."""
        if done.seq <= self._settled_seq:
            return
        self._settled_seq = done.seq
        is_mine = self._mine.pop(done.seq, None) is not None
        decided = self._decisions.take(done.seq)
        acknowledgements = {tp: _verdicts(ranges, decided.get(tp, {})) for tp, ranges in done.acquired.items()}
        stored: set[TopicIdPartition] = set()
        if is_mine:
            stored = self._member.settle(acknowledgements)
        else:  # another process had acquired it, and its locks are gone
            self._owe(done.owed)
        for tp, some in acknowledgements.items():
            if tp not in stored:
                # Released records are not owed: they are shown when they are delivered again.
                self._owe({tp: [each[:2] for each in some if each.kind != AcknowledgeType.RELEASE]})
                rejected = {each.first: each.kind for each in some if each.kind == AcknowledgeType.REJECT}
                self._rejected.setdefault(tp, {}).update(rejected)

    def _owe(self, ranges: Mapping[TopicIdPartition, Iterable[Range]]) -> None:
        for tp, each in ranges.items():
            if joined := join(self._owed.get(tp, ()), each):
                self._owed[tp] = joined

    def _forget_what_is_done(self) -> None:
        """Forget owed records before the start of their share partition: they will not be delivered again."""
        if not self._owed or self._now_ms() - self._checked_at_ms < CHECK_EVERY_MS:
            return
        self._checked_at_ms = self._now_ms()
        for tp, start in self._member.starts(list(self._owed)).items():
            if tp in self._owed and start:
                self._no_longer_owe(tp, [(0, start - 1)])

    def _no_longer_owe(self, tp: TopicIdPartition, ranges: Iterable[Range]) -> None:
        self._owed[tp] = subtract(self._owed[tp], ranges)
        if not self._owed[tp]:
            del self._owed[tp]
            self._rejected.pop(tp, None)

    # --- batches ------------------------------------------------------------------------------------------------------

    def next_end(self, start: ShareOffset, max_records: int) -> ShareOffset:
        """Acknowledge finished batches, and acquire the next one; returns `start` if there are no records."""
        self.settle(start)
        if start.seq + 1 in self._mine:
            return self._mine[start.seq + 1]  # Spark has not run it yet
        self._forget_what_is_done()
        acquired, names = self._acquire(max_records)
        if not acquired:
            return start
        batch = {tp: tuple(sorted(ranges)) for tp, ranges in acquired.items()}
        owed = {tp: tuple(each) for tp, each in self._owed.items()}
        end = ShareOffset(start.seq + 1, self._group, batch, names, owed)
        self._mine[end.seq] = end
        return end

    def _acquire(self, max_records: int) -> tuple[dict[TopicIdPartition, list[Acquisition]], dict[str, str]]:
        acquired: dict[TopicIdPartition, list[Acquisition]] = {}
        names: dict[str, str] = {}
        records_left, bytes_left = max_records, self._limits.max_bytes
        idle_since_ms = self._now_ms()
        ends_at_ms = idle_since_ms + self._limits.acquire_time_ms
        while min(records_left, bytes_left) > 0 and sum(map(len, acquired.values())) < RANGES_MAX:
            brought = self._member.acquire(records_left, waits=not acquired)
            wanted = self._within_target(brought)
            for held in self._new(wanted):
                older = acquired.get(held.tp, [])
                acquired[held.tp] = [*_without(older, held.ranges), *held.ranges]
                names[held.tp.topic_id] = held.topic
                records_left -= sum(each.size for each in held.ranges)
                bytes_left -= held.size_bytes
            now_ms = self._now_ms()
            idle_since_ms = now_ms if wanted else idle_since_ms
            if not brought or now_ms - idle_since_ms > BEYOND_MS or (acquired and now_ms > ends_at_ms):
                break
        return acquired, names

    def _within_target(self, brought: Iterable[AcquiredPartition]) -> list[AcquiredPartition]:
        """Without records that were appended after the query was told to stop.

        They stay locked until the query ends, which is soon. If they were released now, they would be delivered again
        at once, until they reach the delivery limit.
        """
        if self._targets is None:
            return list(brought)
        kept: list[AcquiredPartition] = []
        for held in brought:
            target = self._targets.get(held.tp, 0)
            inside = [each for each in held.ranges if each.first < target]
            if inside:
                kept.append(held._replace(ranges=inside))
        return kept

    def _new(self, brought: Iterable[AcquiredPartition]) -> Iterable[AcquiredPartition]:
        """The records that were not shown before. Owed records are acknowledged at once."""
        for held in brought:
            owed = self._owed.get(held.tp, [])
            parts = [
                (Acquisition(first, last, each.delivery_count), is_owed)
                for each in held.ranges
                for first, last, is_owed in cut(each.first, each.last, owed)
            ]
            shown = [each for each, is_owed in parts if is_owed]
            if shown:
                self._pay(held.tp, shown)
            new = [each for each, is_owed in parts if not is_owed]
            if new:
                yield held._replace(ranges=new)

    def _pay(self, tp: TopicIdPartition, shown: Sequence[Acquisition]) -> None:
        stored = self._member.settle({tp: _verdicts(shown, self._rejected.get(tp, {}))})
        if tp in stored:
            self._no_longer_owe(tp, [(each.first, each.last) for each in shown])


def _without(ranges: Iterable[Acquisition], newer: Iterable[Acquisition]) -> list[Acquisition]:
    """The ranges without records that were delivered again, because their lock was lost."""
    by = join(each[:2] for each in newer)
    return [
        Acquisition(first, last, each.delivery_count)
        for each in ranges
        for first, last, is_newer in cut(each.first, each.last, by)
        if not is_newer
    ]


def tasks_of(end: ShareOffset, max_records: int | None) -> list[Task]:
    """The tasks of the batch that ends here; they depend only on the offset."""
    return [
        Task(tp, end.names[tp.topic_id], some, end.seq)
        for tp in sorted(end.acquired)
        for some in _pieces(end.acquired[tp], max_records)
    ]


def _pieces(ranges: Sequence[Acquisition], max_records: int | None) -> Iterable[tuple[Acquisition, ...]]:
    if max_records is None:
        return [tuple(ranges)]
    pieces: list[list[Acquisition]] = [[]]
    left = max_records
    for each in ranges:
        first = each.first
        while first <= each.last:
            if not left:
                pieces.append([])
                left = max_records
            last = min(each.last, first + left - 1)
            pieces[-1].append(Acquisition(first, last, each.delivery_count))
            left -= last - first + 1
            first = last + 1
    return [tuple(piece) for piece in pieces if piece]


def _verdicts(ranges: Iterable[Acquisition], kinds: Mapping[int, int]) -> list[Acknowledgement]:
    """Accept all records without another decision."""
    decided = join((offset, offset) for offset in kinds)
    acknowledgements: list[Acknowledgement] = []
    for each in ranges:
        for first, last, is_decided in cut(each.first, each.last, decided):
            if is_decided:
                acknowledgements += [
                    Acknowledgement(offset, offset, kinds[offset]) for offset in range(first, last + 1)
                ]
            else:
                acknowledgements.append(Acknowledgement(first, last, AcknowledgeType.ACCEPT))
    return acknowledgements
