"""Series: points far enough apart, and never more than there is room for."""

import itertools

from ottla.observe.series_history import KEPT_MS, POINTS_MAX, SPACING_MS, History, Point


def test_points_that_are_too_close_are_replaced_by_the_newest():
    history = History()
    for at_ms in range(0, 4 * SPACING_MS, SPACING_MS // 5):
        history.add("lag", at_ms, at_ms)
    points = history.points("lag")
    gaps = [after.at_ms - before.at_ms for before, after in itertools.pairwise(points)]
    assert all(gap >= SPACING_MS for gap in gaps[:-1])
    assert points[-1] == Point(4 * SPACING_MS - SPACING_MS // 5, 4 * SPACING_MS - SPACING_MS // 5)


def test_length_and_number_are_bounded():
    history = History(series_max=3)
    for name in "abcd":
        for step in range(2 * POINTS_MAX):
            history.add(name, step * SPACING_MS, step)
    assert history.points("a") == ()
    assert history.dropped == 1
    assert len(history.points("d")) == POINTS_MAX
    history.forget("d")
    assert history.points("d") == ()


def test_a_figure_that_stays_as_it_is_takes_two_points():
    history = History()
    for at_ms in range(0, 100 * SPACING_MS, SPACING_MS):
        history.add("lag", at_ms, 7)
    assert history.points("lag") == (Point(0, 7), Point(99 * SPACING_MS, 7))
    history.add("lag", 100 * SPACING_MS, 8)
    assert history.points("lag")[1:] == (Point(99 * SPACING_MS, 7), Point(100 * SPACING_MS, 8))


def test_what_is_older_than_an_hour_is_dropped():
    history = History()
    for step in range(4):
        history.add("lag", step * SPACING_MS, step)
    later_ms = KEPT_MS + 4 * SPACING_MS
    for at_ms in range(4 * SPACING_MS, later_ms + 1, SPACING_MS):
        history.add("lag", at_ms, 9)
    assert history.points("lag") == (Point(later_ms - KEPT_MS, 9), Point(later_ms, 9))


def test_a_sum_whose_parts_come_one_by_one_is_one_point():
    history = History()
    for value in (10, 30, 60):
        history.add("lag", 0, value)
    history.add("lag", SPACING_MS, 61)
    assert history.points("lag") == (Point(0, 60), Point(SPACING_MS, 61))
