"""How figures changed while a cluster was observed: points over time, bounded in number and in length."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.health.series import LruDict

__all__ = ["History", "Point"]

SERIES_MAX: Final = 2_000
POINTS_MAX: Final = 720
SPACING_MS: Final = 5_000
"""Points are at least this far apart, so that a series covers an hour."""


class Point(NamedTuple):
    at_ms: int
    value: float


class History:
    """Series by name. The series that was not added to for longest is dropped first."""

    def __init__(self, series_max: int = SERIES_MAX) -> None:
        self._series: LruDict[str, deque[Point]] = LruDict(series_max)

    def add(self, name: str, at_ms: int, value: float) -> None:
        points = self._series.touch(name, lambda: deque(maxlen=POINTS_MAX))
        if len(points) > 1 and points[-1].at_ms - points[-2].at_ms < SPACING_MS:
            points.pop()
        points.append(Point(at_ms, value))

    def points(self, name: str) -> Sequence[Point]:
        return tuple(self._series.get(name) or ())

    def forget(self, name: str) -> None:
        self._series.pop(name)

    @property
    def dropped(self) -> int:
        """How many series were dropped for want of room."""
        return self._series.dropped
