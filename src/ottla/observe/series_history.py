"""How figures changed while a cluster was observed: points over time, bounded in number and in length.

Theory of operation. A console keeps a series for each group, so the points stand in arrays: an hour of a series that
changes all the time takes 12 KB there, and eight times that as objects. A figure that stays as it is takes two points,
its first and its last, however long it stays.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import starmap
from typing import Final, NamedTuple

from ottla.health.series import LruDict

__all__ = ["History", "Point"]

SERIES_MAX: Final = 2_000
POINTS_MAX: Final = 720
SPACING_MS: Final = 5_000
"""Points are at least this far apart, so that a series covers an hour."""
KEPT_MS: Final = POINTS_MAX * SPACING_MS


class Point(NamedTuple):
    at_ms: int
    value: float


class _Series:
    """The points of one figure, as an array of times and an array of values."""

    __slots__ = ("_times_ms", "_values")

    def __init__(self) -> None:
        self._times_ms = array("q")
        self._values = array("d")

    def add(self, at_ms: int, value: float) -> None:
        times, values = self._times_ms, self._values
        if times and times[-1] == at_ms:
            values[-1] = value  # a sum of which the parts come one by one
        elif len(times) > 1 and (times[-1] - times[-2] < SPACING_MS or values[-2] == values[-1] == value):
            times[-1], values[-1] = at_ms, value
        else:
            times.append(at_ms)
            values.append(value)
        # The first point may be older than an hour: until the second, the figure was as it says.
        while len(times) > POINTS_MAX or (len(times) > 2 and times[1] <= at_ms - KEPT_MS):
            del times[0], values[0]

    def points(self) -> tuple[Point, ...]:
        """The points of the last hour."""
        if not self._times_ms:
            return ()
        first, *others = starmap(Point, zip(self._times_ms, self._values, strict=True))
        since_ms = self._times_ms[-1] - KEPT_MS
        return first._replace(at_ms=max(first.at_ms, since_ms)), *others


class History:
    """Series by name. The series that was not added to for longest is dropped first."""

    def __init__(self, series_max: int = SERIES_MAX) -> None:
        self._series: LruDict[str, _Series] = LruDict(series_max)

    def add(self, name: str, at_ms: int, value: float) -> None:
        self._series.touch(name, _Series).add(at_ms, value)

    def points(self, name: str) -> Sequence[Point]:
        series = self._series.get(name)
        return () if series is None else series.points()

    def forget(self, name: str) -> None:
        self._series.pop(name)

    @property
    def dropped(self) -> int:
        """How many series were dropped for want of room."""
        return self._series.dropped
