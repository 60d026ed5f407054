"""How fast topics grow: the end offsets that pages have asked for, and the rate between the first and the last of a
minute.

Nobody is asked for this alone. So the rate of a topic is known once two pages, some seconds apart, have shown it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ottla.client import TopicPartition
from ottla.health.series import LruDict

__all__ = ["EndOffsets", "Rate"]

TOPICS_MAX: Final = 10_000
SPACING_MS: Final = 1_500
"""Offsets that are nearer to each other make no rate."""
WINDOW_MS: Final = 60_000
POINTS_MAX: Final = WINDOW_MS // SPACING_MS + 1


class Rate(msgspec.Struct, frozen=True):
    per_s: float
    """Records a second; what transactions write between them counts as well."""
    over_ms: int
    at_ms: int
    """When it was last measured."""


class _Point(NamedTuple):
    at_ms: int
    total: int


class _Topic:
    def __init__(self) -> None:
        self.partitions = 0
        self.points: deque[_Point] = deque(maxlen=POINTS_MAX)


class EndOffsets:
    def __init__(self, room: int = TOPICS_MAX) -> None:
        self._topics: LruDict[str, _Topic] = LruDict(room)

    def take(self, at_ms: int, ends: Mapping[TopicPartition, int], partitions: Mapping[str, int]) -> None:
        """Remember the ends of the topics of which all partitions are among them; `partitions` is how many each has."""
        found: dict[str, list[int]] = {}
        for at, end in ends.items():
            found.setdefault(at.topic, []).append(end)
        for name, each in found.items():
            if len(each) == partitions.get(name):
                self._note(name, len(each), _Point(at_ms, sum(each)))

    def _note(self, name: str, partitions: int, new: _Point) -> None:
        topic = self._topics.touch(name, _Topic)
        points = topic.points
        if points and points[0].at_ms <= new.at_ms < points[-1].at_ms:
            return  # an answer that two pages share, and after which another one came
        if points and new.at_ms < points[0].at_ms:
            points.clear()  # the clock was set back
        if topic.partitions != partitions or (points and new.total < points[-1].total):
            points.clear()  # it has got more partitions, or is another topic of the same name
        topic.partitions = partitions
        if not points or new.at_ms - points[-1].at_ms >= SPACING_MS:
            points.append(new)
        while new.at_ms - points[0].at_ms > WINDOW_MS and len(points) > 2:
            points.popleft()

    def rate(self, topic: str) -> Rate | None:
        known = self._topics.get(topic)
        if known is None or len(known.points) < 2:
            return None
        first, last = known.points[0], known.points[-1]
        over_ms = last.at_ms - first.at_ms
        return Rate(1000 * (last.total - first.total) / over_ms, over_ms, last.at_ms)
