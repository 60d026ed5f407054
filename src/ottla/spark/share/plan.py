"""What the driver's runner works out: which ranges a batch holds, what is settled, and what is owed.

Nothing here connects anywhere or knows pyspark: the group is asked through `Member`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import Acquisition, Place, ShareOffset
from ottla.spark.share.ranges import Range, cut, join, subtract
from ottla.wire.acknowledge_type import AcknowledgeType

__all__ = ["Held", "Member", "SharePlan", "Task", "Verdict", "tasks_of"]

RANGES_MAX: Final = 20_000
"""An offset with more ranges than this would be a large file for Spark to write and read in every batch."""
LOOK_EVERY_MS: Final = 60_000
BEYOND_MS: Final = 1_000
"""How long a query that is to stop looks for what it still wants behind what came later."""


class Verdict(NamedTuple):
    first: int
    last: int
    kind: int


class Held(NamedTuple):
    """What a fetch has brought from one partition."""

    place: Place
    topic: str
    ranges: Sequence[Acquisition]


class Member(Protocol):
    """The member of the group; tests have one of their own."""

    def acquire(self, max_records: int) -> list[Held]: ...

    def settle(self, verdicts: Mapping[Place, Sequence[Verdict]]) -> set[Place]:
        """Acknowledge ranges that are held; the partitions for which that is known to be stored."""

    def starts(self, places: Iterable[Place]) -> Mapping[Place, int]:
        """Where these share partitions start: all before is done. Those of a topic that is gone start at the end."""


class Task(NamedTuple):
    """What one task reads."""

    place: Place
    topic: str
    ranges: tuple[Acquisition, ...]
    seq: int


class SharePlan:
    def __init__(
        self, member: Member, group: str, decisions: Decisions, now_ms: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._member = member
        self._group = group
        self._decisions = decisions
        self._now_ms = now_ms
        self._looked_at_ms = float("-inf")
        self._mine: dict[int, ShareOffset] = {}
        """Batches that this process has acquired and not settled yet."""
        self._settled_seq = 0
        self._owed: dict[Place, list[Range]] = {}
        self._rejected: dict[Place, dict[int, int]] = {}
        """Of what is owed, that which is to be rejected when it comes again."""
        self._targets: Mapping[Place, int] | None = None

    def stop_at(self, targets: Mapping[Place, int]) -> None:
        """Take nothing at or behind these offsets any more."""
        self._targets = targets

    # --- settling -----------------------------------------------------------------------------------------------------

    def settle(self, done: ShareOffset) -> None:
        """Everything up to here is in Spark's commit log: acknowledge it, or remember that it is owed."""
        if done.seq <= self._settled_seq:
            return
        self._settled_seq = done.seq
        is_mine = self._mine.pop(done.seq, None) is not None
        decided = self._decisions.take(done.seq)
        verdicts = {place: _verdicts(ranges, decided.get(place, {})) for place, ranges in done.acquired.items()}
        stored: set[Place] = set()
        if is_mine:
            stored = self._member.settle(verdicts)
        else:  # another process has acquired it, and its locks went with it
            self._owe(done.owed)
        for place, some in verdicts.items():
            if place not in stored:
                # What is released is not owed: it comes again to be shown.
                self._owe({place: [each[:2] for each in some if each.kind != AcknowledgeType.RELEASE]})
                rejected = {each.first: each.kind for each in some if each.kind == AcknowledgeType.REJECT}
                self._rejected.setdefault(place, {}).update(rejected)

    def _owe(self, ranges: Mapping[Place, Iterable[Range]]) -> None:
        for place, each in ranges.items():
            if joined := join(self._owed.get(place, ()), each):
                self._owed[place] = joined

    def _forget_what_is_done(self) -> None:
        """What lies before the start of its share partition is accepted, or archived: it will not come again."""
        if not self._owed or self._now_ms() - self._looked_at_ms < LOOK_EVERY_MS:
            return
        self._looked_at_ms = self._now_ms()
        for place, start in self._member.starts(list(self._owed)).items():
            if place in self._owed and start:
                self._no_longer_owe(place, [(0, start - 1)])

    def _no_longer_owe(self, place: Place, ranges: Iterable[Range]) -> None:
        self._owed[place] = subtract(self._owed[place], ranges)
        if not self._owed[place]:
            del self._owed[place]
            self._rejected.pop(place, None)

    # --- batches ------------------------------------------------------------------------------------------------------

    def next_end(self, start: ShareOffset, max_records: int) -> ShareOffset:
        """Settle what is done, and acquire the next batch; `start` if there is nothing."""
        self.settle(start)
        if start.seq + 1 in self._mine:
            return self._mine[start.seq + 1]  # Spark has not run it yet
        self._forget_what_is_done()
        acquired, names = self._acquire(max_records)
        if not acquired:
            return start
        batch = {place: tuple(sorted(ranges)) for place, ranges in acquired.items()}
        owed = {place: tuple(each) for place, each in self._owed.items()}
        end = ShareOffset(start.seq + 1, self._group, batch, names, owed)
        self._mine[end.seq] = end
        return end

    def _acquire(self, max_records: int) -> tuple[dict[Place, list[Acquisition]], dict[str, str]]:
        acquired: dict[Place, list[Acquisition]] = {}
        names: dict[str, str] = {}
        left = max_records
        idle_since_ms = self._now_ms()
        while left > 0 and sum(map(len, acquired.values())) < RANGES_MAX:
            brought = self._member.acquire(left)
            if not brought:
                break
            wanted = self._within_target(brought)
            if wanted:
                idle_since_ms = self._now_ms()
            elif self._now_ms() - idle_since_ms > BEYOND_MS:
                break
            for held in self._new(wanted):
                acquired.setdefault(held.place, []).extend(held.ranges)
                names[held.place.topic_id] = held.topic
                left -= sum(each.size for each in held.ranges)
        return acquired, names

    def _within_target(self, brought: Iterable[Held]) -> list[Held]:
        """Without what came after the query was told to stop.

        That stays locked until the query ends, which is soon. Released now, it would come at once again, and again,
        until its deliveries are used up.
        """
        if self._targets is None:
            return list(brought)
        kept: list[Held] = []
        for held in brought:
            target = self._targets.get(held.place, 0)
            inside = [each for each in held.ranges if each.first < target]
            if inside:
                kept.append(held._replace(ranges=inside))
        return kept

    def _new(self, brought: Iterable[Held]) -> Iterable[Held]:
        """What was not shown before. What is owed is acknowledged at once."""
        for held in brought:
            owed = self._owed.get(held.place, [])
            parts = [
                (Acquisition(first, last, each.delivery_count), is_owed)
                for each in held.ranges
                for first, last, is_owed in cut(each.first, each.last, owed)
            ]
            shown = [each for each, is_owed in parts if is_owed]
            if shown:
                self._pay(held.place, shown)
            new = [each for each, is_owed in parts if not is_owed]
            if new:
                yield held._replace(ranges=new)

    def _pay(self, place: Place, shown: Sequence[Acquisition]) -> None:
        stored = self._member.settle({place: _verdicts(shown, self._rejected.get(place, {}))})
        if place in stored:
            self._no_longer_owe(place, [(each.first, each.last) for each in shown])


def tasks_of(end: ShareOffset, max_records: int | None) -> list[Task]:
    """The tasks of the batch that ends here: a function of the offset alone."""
    return [
        Task(place, end.names[place.topic_id], some, end.seq)
        for place in sorted(end.acquired)
        for some in _pieces(end.acquired[place], max_records)
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


def _verdicts(ranges: Iterable[Acquisition], kinds: Mapping[int, int]) -> list[Verdict]:
    """Accept all but what was decided otherwise."""
    decided = join((offset, offset) for offset in kinds)
    verdicts: list[Verdict] = []
    for each in ranges:
        for first, last, is_decided in cut(each.first, each.last, decided):
            if is_decided:
                verdicts += [Verdict(offset, offset, kinds[offset]) for offset in range(first, last + 1)]
            else:
                verdicts.append(Verdict(first, last, AcknowledgeType.ACCEPT))
    return verdicts
