"""Reduces lines to a number of points: each column of pixels keeps its lowest and its highest value, in order.

So a peak of one sample is visible in a plot of a month, and no line has more points than can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from statistics import median
from typing import Final, TypeAlias

Point: TypeAlias = tuple[int, float]
"""A time in ms, and a value."""

POINTS_MAX: Final = 2_000
GAP: Final = 5


def thinned(points: Sequence[Point], from_ms: int, to_ms: int, points_max: int = POINTS_MAX) -> list[Point]:
    if len(points) <= points_max:
        return list(points)
    width_ms = max(1, -(-(to_ms + 1 - from_ms) // (points_max // 2)))
    columns: dict[int, list[Point]] = {}
    for point in points:
        columns.setdefault((point[0] - from_ms) // width_ms, []).append(point)
    return [point for column in columns.values() for point in _extremes(column)]


def _extremes(column: Sequence[Point]) -> list[Point]:
    ends = {min(column, key=lambda point: point[1]), max(column, key=lambda point: point[1])}
    return sorted(ends)


def gap_ms(times: Sequence[int]) -> float:
    """Pauses between neighbours that are longer are gaps: many times the usual one. Of few times nobody can tell."""
    pauses = [after - before for before, after in pairwise(times)]
    return GAP * median(pauses) if len(pauses) > GAP else inf


def steps(points: Sequence[Point]) -> list[Point]:
    """A line of steps without points at which nothing changes, except the last."""
    kept = [point for number, point in enumerate(points) if number == 0 or point[1] != points[number - 1][1]]
    return [*kept, points[-1]] if points and points[-1] != kept[-1] else kept
