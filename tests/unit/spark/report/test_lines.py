"""Lines with fewer points than the data have, and axes with ticks that people read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.report.axes import Scale, ticks_of_durations, ticks_of_time, ticks_of_values
from ottla.spark.report.thin import POINTS_MAX, Point, steps, thinned
from tests.unit.spark.report.story import START_MS

POINTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000)), min_size=1).map(sorted)


def test_a_peak_of_one_sample_stays():
    points: list[Point] = [(ms, 1.0) for ms in range(100_000)]
    points[54_321] = (54_321, 999.0)
    drawn = thinned(points, 0, 99_999)
    assert len(drawn) <= POINTS_MAX
    assert (54_321, 999.0) in drawn
    assert drawn == sorted(drawn)


def test_few_points_stay_as_they_are():
    points: list[Point] = [(1, 2.0), (3, 4.0)]
    assert thinned(points, 0, 10) == points


@settings(max_examples=25)
@given(POINTS, st.integers(0, 10**6))
def test_the_lowest_and_the_highest_value_are_never_lost(points: list[Point], span: int):
    many = points * (POINTS_MAX // len(points) + 1)
    drawn = thinned(many, 0, max(span, points[-1][0]))
    assert len(drawn) <= POINTS_MAX
    assert {min(value for _, value in points), max(value for _, value in points)} <= {value for _, value in drawn}
    assert set(drawn) <= set(points)


def test_steps_keep_changes_and_the_end():
    assert steps([(0, 1), (5, 1), (9, 2), (12, 2), (15, 2)]) == [(0, 1), (9, 2), (15, 2)]
    assert steps([]) == []
    assert steps([(3, 1)]) == [(3, 1)]


@pytest.mark.parametrize(
    ("length_s", "texts"),
    [
        (1, ["14:13:20", "14:13:21"]),
        (245, ["14:14", "14:15", "14:16", "14:17"]),
        (7200, ["14:30", "15:00", "15:30", "16:00"]),
        (86_400 * 30, ["09-24", "10-01", "10-08", "10-15"]),
    ],
)
def test_ticks_of_time_are_round(length_s: int, texts: list[str]):
    assert [tick.text for tick in ticks_of_time(Scale(START_MS, START_MS + 1000 * length_s))] == texts


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 1]),
        (0, 3, [0, 1, 2, 3]),
        (0, 858, [0, 500, 1000]),
        (0, 0.4, [0, 0.1, 0.2, 0.3, 0.4]),
        (101, 107, [100, 102, 104, 106, 108]),
        (0, 12_345_678, [0, 5_000_000, 10_000_000, 15_000_000]),
    ],
)
def test_ticks_of_values_are_round_and_hold_all(low: float, high: float, ticks: list[float]):
    scale, found = ticks_of_values(low, high)
    assert found == ticks
    assert (scale.low, scale.high) == (ticks[0], ticks[-1])


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 0, ["1 ms", "10 ms"]),
        (120, 7_100, ["100 ms", "1 s", "10 s"]),
        (30_000, 700_000, ["10 s", "1 min", "10 min", "1 h"]),
        (10**11, 10**12, ["40 d"]),
    ],
)
def test_durations_have_ticks_that_people_think_in(low: float, high: float, texts: list[str]):
    _, found = ticks_of_durations(low, high)
    assert [tick.text for tick in found] == texts
