"""Series: points far enough apart, and never more than there is room for."""

import itertools

from ottla.observe.series_history import POINTS_MAX, SPACING_MS, History, Point


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
