"""Bounded containers: a series of a number over time, and a dictionary that drops the least recently used."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from ottla.wire.lag import passed_at_ms

__all__ = ["LruDict", "Series"]

POINTS: Final = 72
"""Enough for an hour with a point every minute, or a quarter of an hour with one every 15 s."""

K = TypeVar("K")
V = TypeVar("V")


class Series:
    """Points (time, value): the newest one, and older ones at least `spacing_ms` apart.

    While the value stays the same, only its first and its last time are kept: most partitions of a cluster are idle.
    """

    __slots__ = ("_spacing_ms", "points")

    def __init__(self, spacing_ms: int) -> None:
        self._spacing_ms = spacing_ms
        self.points: deque[tuple[int, float]] = deque(maxlen=POINTS)

    def add(self, at_ms: int, value: float) -> None:
        points = self.points
        if len(points) > 1:
            (before_ms, before), (last_ms, last) = points[-2], points[-1]
            if last_ms - before_ms < self._spacing_ms or before == last == value:
                points.pop()
        points.append((at_ms, value))

    @property
    def span_ms(self) -> int:
        return self.points[-1][0] - self.points[0][0] if self.points else 0

    def at(self, at_ms: int) -> float | None:
        """The value at a time, linearly interpolated; None before the first point."""
        points = self.points
        index = bisect_right(points, (at_ms, float("inf")))
        if index == 0:
            return None
        before_ms, before = points[index - 1]
        if index == len(points) or before_ms == at_ms:
            return before
        after_ms, after = points[index]
        return before + (after - before) * (at_ms - before_ms) / (after_ms - before_ms)

    def when(self, value: float) -> float | None:
        """When a series that only grows had this value; None if that was before the first point."""
        points = self.points
        index = bisect_right(points, value, key=lambda point: point[1])
        if index == 0:
            return None
        if index == len(points):
            return points[-1][0]
        passed: float = passed_at_ms(value, points[index - 1], points[index])
        return passed

    def per_ms(self, now_ms: int, back_ms: int) -> float | None:
        """The slope over the last `back_ms`; None if less than nine tenths of that time is known."""
        if not self.points or self.points[0][0] > now_ms - 0.9 * back_ms:
            return None
        from_ms = max(now_ms - back_ms, self.points[0][0])
        then, now = self.at(from_ms), self.points[-1][1]
        return None if then is None else (now - then) / max(1, now_ms - from_ms)


class LruDict(Generic[K, V]):
    """A dictionary of at most `room` entries that drops the least recently touched."""

    def __init__(self, room: int) -> None:
        self._entries: dict[K, V] = {}
        self._room = room
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def values(self) -> list[V]:
        return list(self._entries.values())

    def items(self) -> list[tuple[K, V]]:
        return list(self._entries.items())

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def pop(self, key: K) -> V | None:
        return self._entries.pop(key, None)

    def touch(self, key: K, make: Callable[[], V]) -> V:
        """The entry, created if it is missing; it becomes the most recently used one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = make()
            if len(self._entries) >= self._room:
                del self._entries[next(iter(self._entries))]
                self.dropped += 1
        self._entries[key] = entry
        return entry
