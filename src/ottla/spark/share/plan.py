"""What the driver's runner decides: which ranges a batch holds, what is settled, and what is owed.

Nothing here connects anywhere or knows pyspark: the group is asked through `Member`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.spark.share.offsets import Acquisition, Place, ShareOffset
from ottla.spark.share.ranges import Range, cut, join, subtract

__all__ = ["Decisions", "Held", "Member", "SharePlan", "Task", "Verdict", "tasks_of"]

RANGES_MAX: Final = 20_000
"""An offset with more ranges than this would be a large file for Spark to write and read in every batch."""
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
LOOK_EVERY_MS: Final = 60_000


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

    def starts(self) -> Mapping[Place, int]:
        """Where share partitions start: all before is done."""


class Decisions:
    """Rows that the query wants to be rejected or released, by batch and place."""

    def __init__(self) -> None:
        self._by_seq: dict[int, dict[Place, dict[int, int]]] = {}

    def add(self, seq: int, place: Place, offsets: Iterable[int], kind: int) -> None:
        self._by_seq.setdefault(seq, {}).setdefault(place, {}).update(dict.fromkeys(offsets, kind))

    def take(self, seq: int) -> Mapping[Place, Mapping[int, int]]:
        return self._by_seq.pop(seq, {})


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
        self._looked_at_ms = 0.0
        self._mine: dict[int, Mapping[Place, tuple[Acquisition, ...]]] = {}
        """Batches that this process has acquired and not settled yet."""
        self._settled_seq = 0
        self._owed: dict[Place, list[Range]] = {}
        self._targets: Mapping[Place, int] | None = None

    def initial(self) -> ShareOffset:
        return ShareOffset(0, self._group)

    def stop_at(self, targets: Mapping[Place, int]) -> None:
        """Take nothing at or behind these offsets any more."""
        self._targets = targets

    # --- settling -----------------------------------------------------------------------------------------------------

    def settle(self, done: ShareOffset) -> None:
        """Everything up to here is in Spark's commit log: accept it, or remember that it is owed."""
        if done.seq <= self._settled_seq:
            return
        self._settled_seq = done.seq
        mine = self._mine.pop(done.seq, None)
        if mine is None:  # another process has acquired it, and its locks went with it
            self._owe({place: [each[:2] for each in ranges] for place, ranges in done.acquired.items()})
            self._owe(done.owed)
            return
        verdicts = {place: _verdicts(ranges, {}) for place, ranges in mine.items()}
        for place, kinds in self._decisions.take(done.seq).items():
            if place in mine:
                verdicts[place] = _verdicts(mine[place], kinds)
        stored = self._member.settle(verdicts)
        accepted = {place: [each[:2] for each in some if each.kind == ACCEPT] for place, some in verdicts.items()}
        self._owe({place: ranges for place, ranges in accepted.items() if place not in stored})

    def _owe(self, ranges: Mapping[Place, Iterable[Range]]) -> None:
        for place, each in ranges.items():
            self._owed[place] = join(self._owed.get(place, ()), each)

    def _forget_what_is_done(self) -> None:
        """What lies before the start of its share partition is accepted, or archived: it will not come again."""
        if not self._owed or self._now_ms() - self._looked_at_ms < LOOK_EVERY_MS:
            return
        self._looked_at_ms = self._now_ms()
        for place, start in self._member.starts().items():
            if place in self._owed:
                self._owed[place] = subtract(self._owed[place], [(0, start - 1)] if start else [])
        self._owed = {place: ranges for place, ranges in self._owed.items() if ranges}

    # --- batches ------------------------------------------------------------------------------------------------------

    def next_end(self, start: ShareOffset, max_records: int) -> ShareOffset:
        """Settle what is done, and acquire the next batch; `start` if there is nothing."""
        self.settle(start)
        self._forget_what_is_done()
        acquired: dict[Place, list[Acquisition]] = {}
        names: dict[str, str] = {}
        left = max_records
        while left > 0 and sum(map(len, acquired.values())) < RANGES_MAX:
            brought = self._member.acquire(left)
            if not brought:
                break
            for held in self._new(self._within_target(brought)):
                acquired.setdefault(held.place, []).extend(held.ranges)
                names[held.place.topic_id] = held.topic
                left -= sum(each.size for each in held.ranges)
        if not acquired:
            return start
        batch = {place: tuple(sorted(ranges)) for place, ranges in acquired.items()}
        seq = max(start.seq, self._settled_seq) + 1
        self._mine[seq] = batch
        return ShareOffset(seq, self._group, batch, names, {place: tuple(each) for place, each in self._owed.items()})

    def _within_target(self, brought: Iterable[Held]) -> list[Held]:
        """Give back what came after the query was told to stop."""
        if self._targets is None:
            return list(brought)
        kept: list[Held] = []
        for held in brought:
            target = self._targets.get(held.place, 0)
            parts = [(each, each.first < target) for each in held.ranges]
            inside = [each for each, is_inside in parts if is_inside]
            outside = [Verdict(each.first, each.last, RELEASE) for each, is_inside in parts if not is_inside]
            if outside:
                self._member.settle({held.place: outside})
            if inside:
                kept.append(held._replace(ranges=inside))
        return kept

    def _new(self, brought: Iterable[Held]) -> Iterable[Held]:
        """What was not shown before. What is owed is accepted at once."""
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
        stored = self._member.settle({place: [Verdict(each.first, each.last, ACCEPT) for each in shown]})
        if place in stored:
            self._owed[place] = subtract(self._owed[place], [(each.first, each.last) for each in shown])
            if not self._owed[place]:
                del self._owed[place]


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
                verdicts.append(Verdict(first, last, ACCEPT))
    return verdicts
