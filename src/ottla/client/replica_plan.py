"""Plans where replicas shall be: spread over brokers by count and size, with few moves and few bytes to copy.

Replicas of a partition stay on different racks as far as they can. Counts come first: each move takes a replica from a
broker with more to one with fewer, and among those that could move the one that brings the brokers' bytes closest.
Then replicas change places where bytes are still far apart. Leaders are spread last, by the order of replicas alone,
which copies nothing: the first replica of a partition is the one that leads it when all is well.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.metadata import TopicPartition

__all__ = ["Move", "PlacedPartition", "PlanError", "spread"]

_TOLERANCE: Final = 0.1
"""How far apart the bytes of two brokers may be, as a part of what a broker has on average."""
_SWAPS_PER_BROKER: Final = 10


class PlanError(ValueError):
    """What is asked for cannot be done with these brokers."""


class PlacedPartition(NamedTuple):
    """A partition, and where it is."""

    at: TopicPartition
    replicas: tuple[int, ...]
    """The preferred leader first."""
    size_bytes: int = 0


class Move(NamedTuple):
    """What changes for one partition."""

    at: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(each for each in self.after if each not in self.before)

    @property
    def copied_bytes(self) -> int:
        return self.size_bytes * len(self.added)


def spread(
    partitions: Iterable[PlacedPartition], racks: Mapping[int, str | None], *, replication_factor: int | None = None
) -> list[Move]:
    """Spread partitions over brokers, which are given with their racks. Replicas on other brokers move to these."""
    placed = list(partitions)
    planner = _Planner(placed, racks)
    factors = [replication_factor or len(each.replicas) for each in placed]
    if factors and max(factors) > len(racks):
        raise PlanError(f"{max(factors)} replicas need as many brokers, but there are {len(racks)}")
    for each, factor in sorted(zip(placed, factors, strict=True), key=lambda pair: -pair[0].size_bytes):
        planner.resize(each.at, factor)
    planner.even_counts()
    planner.even_bytes()
    planner.even_leaders()
    return [
        Move(each.at, each.replicas, tuple(planner.replicas[each.at]), each.size_bytes)
        for each in sorted(placed)
        if each.replicas != tuple(planner.replicas[each.at])
    ]


class _Planner:
    def __init__(self, partitions: list[PlacedPartition], racks: Mapping[int, str | None]) -> None:
        self._racks = racks
        self._brokers = sorted(racks)
        self._rack_count = len(set(racks.values()))
        self._sizes = {each.at: each.size_bytes for each in partitions}
        self.replicas: dict[TopicPartition, list[int]] = {each.at: list(each.replicas) for each in partitions}
        self._on: dict[int, set[TopicPartition]] = {each: set() for each in self._brokers}
        self._bytes: Counter[int] = Counter()
        for at, replicas in self.replicas.items():
            for broker in replicas:
                if broker in self._on:
                    self._note(at, broker, 1)

    def _note(self, at: TopicPartition, broker: int, sign: int) -> None:
        self._bytes[broker] += sign * self._sizes[at]
        (self._on[broker].add if sign > 0 else self._on[broker].remove)(at)

    def _replace(self, at: TopicPartition, source: int, target: int) -> None:
        replicas = self.replicas[at]
        replicas[replicas.index(source)] = target
        if source in self._on:
            self._note(at, source, -1)
        self._note(at, target, 1)

    def _clashes(self, brokers: Iterable[int]) -> int:
        """How many replicas share a rack although there are other racks."""
        racks = [self._racks.get(each) for each in brokers]
        return max(min(len(racks), self._rack_count) - len(set(racks)), 0)

    def _load(self, broker: int) -> tuple[int, int, int]:
        return len(self._on[broker]), self._bytes[broker], broker

    # --- as many replicas as wanted, on these brokers -----------------------------------------------------------------

    def resize(self, at: TopicPartition, factor: int) -> None:
        for source in [each for each in self.replicas[at] if each not in self._on]:
            others = [each for each in self.replicas[at] if each != source]
            free = [each for each in self._brokers if each not in others]
            if len(others) >= factor or not free:
                self.replicas[at].remove(source)
            else:
                self._replace(at, source, self._best(others, free))
        while len(self.replicas[at]) > factor:
            self._drop(at)
        while len(self.replicas[at]) < factor:
            having = self.replicas[at]
            target = self._best(having, [each for each in self._brokers if each not in having])
            having.append(target)
            self._note(at, target, 1)

    def _best(self, having: list[int], free: list[int]) -> int:
        return min(free, key=lambda each: (self._clashes([*having, each]), self._load(each)))

    def _drop(self, at: TopicPartition) -> None:
        """One that leads by preference goes last."""
        replicas = self.replicas[at]

        def cost(broker: int) -> tuple[int, tuple[int, ...]]:
            rest = [each for each in replicas if each != broker]
            return self._clashes(rest), tuple(-each for each in self._load(broker))

        dropped = min(replicas[1:] or replicas, key=cost)
        replicas.remove(dropped)
        self._note(at, dropped, -1)

    # --- counts and bytes ---------------------------------------------------------------------------------------------

    def even_counts(self) -> None:
        while self._move_one():
            pass

    def _move_one(self) -> bool:
        ordered = sorted(self._brokers, key=self._load)
        for source in reversed(ordered):
            for target in ordered:
                if len(self._on[source]) - len(self._on[target]) < 2:
                    break
                at = self._lightest_move(source, target)
                if at is not None:
                    self._replace(at, source, target)
                    return True
        return False

    def _lightest_move(self, source: int, target: int) -> TopicPartition | None:
        """What brings the bytes of two brokers closest together."""
        gap = self._bytes[source] - self._bytes[target]
        movable = [at for at in self._on[source] if self._may_move(at, source, target)]
        return min(movable, key=lambda at: (abs(gap - 2 * self._sizes[at]), self._sizes[at], at), default=None)

    def _may_move(self, at: TopicPartition, source: int, target: int) -> bool:
        replicas = self.replicas[at]
        if target in replicas:
            return False
        after = [target if each == source else each for each in replicas]
        return self._clashes(after) <= self._clashes(replicas)

    def even_bytes(self) -> None:
        mean = sum(self._bytes.values()) / max(len(self._brokers), 1)
        for _ in range(_SWAPS_PER_BROKER * len(self._brokers)):
            source = max(self._brokers, key=lambda each: (self._bytes[each], each))
            target = min(self._brokers, key=lambda each: (self._bytes[each], each))
            gap = self._bytes[source] - self._bytes[target]
            pair = self._best_swap(source, target, gap) if gap > _TOLERANCE * mean else None
            if pair is None:
                return
            self._replace(pair[0], source, target)
            self._replace(pair[1], target, source)

    def _best_swap(self, source: int, target: int, gap: int) -> tuple[TopicPartition, TopicPartition] | None:
        """Two replicas whose sizes differ by about half of what two brokers differ by, and by less than all of it."""
        going = sorted((self._sizes[at], at) for at in self._on[source] if self._may_move(at, source, target))
        coming = sorted((self._sizes[at], at) for at in self._on[target] if self._may_move(at, target, source))
        best: tuple[float, tuple[TopicPartition, TopicPartition]] | None = None
        position = 0
        for size, at in going:
            while position + 1 < len(coming) and size - coming[position + 1][0] >= gap / 2:
                position += 1
            for other_size, other in coming[position : position + 2]:
                off = abs(gap / 2 - (size - other_size))
                if off < gap / 2 * (1 - _TOLERANCE) and (best is None or off < best[0]):
                    best = (off, (at, other))
        return best and best[1]

    # --- leaders ------------------------------------------------------------------------------------------------------

    def even_leaders(self) -> None:
        """Hand leaders on, from broker to broker, until no chain of them makes the counts more even."""
        led: dict[int, set[TopicPartition]] = {each: set() for each in self._brokers}
        for at, replicas in self.replicas.items():
            led[replicas[0]].add(at)
        while any(self._hand_on(source, led) for source in sorted(led, key=lambda each: (-len(led[each]), each))):
            pass

    def _hand_on(self, source: int, led: dict[int, set[TopicPartition]]) -> bool:
        came: dict[int, tuple[int, TopicPartition]] = {}
        waiting = deque([source])
        while waiting:
            broker = waiting.popleft()
            if len(led[source]) - len(led[broker]) > 1:
                while broker != source:
                    before, at = came[broker]
                    replicas = self.replicas[at]
                    replicas.remove(broker)
                    replicas.insert(0, broker)
                    led[before].remove(at)
                    led[broker].add(at)
                    broker = before
                return True
            for at in sorted(led[broker]):
                for other in self.replicas[at][1:]:
                    if other != source and other not in came:
                        came[other] = (broker, at)
                        waiting.append(other)
        return False
