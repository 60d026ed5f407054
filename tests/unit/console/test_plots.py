"""Small plots: how many shapes they have, where the shapes are, and that names in them stay text."""

from __future__ import annotations

import re

from ottla.console.group_members import TaskMark
from ottla.console.html.epoch_plot import HEIGHT, WIDTH, epoch_plot, shown_until_ms, steps
from ottla.console.html.parts import SPARK_HEIGHT, SPARK_POINTS, sparkline
from ottla.console.html.task_matrix import task_matrix
from ottla.console.html.window_plot import RECTS_MAX, Piece, merged, place, window_plot
from ottla.observe.series_history import Point


def test_alike_neighbours_are_one():
    pieces = [Piece(0, 4, "acquired", 1), Piece(5, 9, "acquired", 1), Piece(11, 12, "acquired", 1)]
    assert merged(pieces) == [Piece(0, 9, "acquired", 1, 2), Piece(11, 12, "acquired", 1)]


def test_there_are_never_too_many_rectangles():
    pieces = [Piece(at, at, ("acquired", "available")[at % 2], at % 7) for at in range(10_000)]
    found = merged(pieces)
    assert len(found) <= RECTS_MAX
    assert (found[0].first, found[-1].last, sum(each.ranges for each in found)) == (0, 9_999, 10_000)
    assert found[0].state == "mixed"
    assert window_plot(pieces, "many", str).count("<rect ") <= RECTS_MAX + 4, "with two patterns and a legend of two"


def test_a_narrow_range_is_drawn_wider_and_stays_inside():
    x, width, is_widened = place(Piece(99_999, 99_999, "archived"), 0, 99_999)
    assert (x + width, width, is_widened) == (1_200, 2.0, True)
    assert place(Piece(0, 49_999, "acquired"), 0, 99_999) == (0, 600, False)
    assert "≥ 2 px" in window_plot([Piece(0, 99_998, "acquired"), Piece(99_999, 99_999, "archived")], "one", str)


def test_titles_are_text():
    assert "<b>" not in window_plot([Piece(0, 1, "acquired", 1)], "<b>", str)
    assert window_plot([], "nothing", str) == ""


def test_each_range_leads_to_its_records_and_the_first_is_reached_by_tab():
    pieces = [Piece(0, 4, "acquired", 1), Piece(5, 5, "archived", 2), Piece(6, 9, "available", 1)]
    text = window_plot(pieces, "three", lambda piece: f"/records/{piece.first}")
    assert re.findall(r'<a href="([^"]*)"( tabindex="-1")?>', text) == [
        ("/records/0", ""),
        ("/records/5", ' tabindex="-1"'),
        ("/records/6", ' tabindex="-1"'),
    ]
    assert "<title>5: archived, delivered 2 times</title>" in text


def test_steps_stay_until_the_next_point():
    assert steps([Point(0, 1), Point(50, 3), Point(100, 2)], 0, 100) == "M4.0,36.0H360.0V4.0H716.0V20.0H716"
    assert (WIDTH, HEIGHT) == (720, 40)


def test_a_plot_ends_soon_after_the_last_change():
    assert shown_until_ms(0, 8_000, 3_600_000) == 10_000
    assert shown_until_ms(0, 0, 3_600_000) == 1_000
    assert shown_until_ms(0, 8_000, 8_500) == 8_500, "but not in the future"


def test_a_plot_of_nothing_is_nothing():
    assert epoch_plot({"members": []}, 0) == ""
    assert "members: 1 to 2" in epoch_plot({"members": [Point(0, 1), Point(5, 2)]}, 10)


def test_a_long_line_keeps_its_peak_and_its_plateau():
    idle = [Point(0, 0), Point(2_000_000, 0)]
    busy = [Point(2_000_000 + 5_000 * at, 900 if at == 77 else at % 3) for at in range(1, 300)]
    text = sparkline([*idle, *busy], "lag")
    assert "lag: from 0 to 900 in" in text
    drawn = re.findall(r"[ML]([0-9.]+),([0-9.]+)", text)
    assert [up for _, up in drawn[:2]] == [f"{SPARK_HEIGHT - 2:.1f}"] * 2, "the line stays down until it is busy"
    assert len(drawn) <= 4 * SPARK_POINTS


def test_tasks_have_letters_beside_their_patterns():
    marks = [
        TaskMark("0_0", "a", "active", "running"),
        TaskMark("0_0", "b", "active", "waiting"),
        TaskMark("0_1", "b", "warmup", "running"),
    ]
    text = task_matrix(marks, [("a", "<first>"), ("b", "second")])
    assert "&lt;first&gt;" in text
    for mark in ('task-active" title="0_0 active, running">A<', 'task-waiting" title="0_0 active, waiting">…<', ">W<"):
        assert mark in text
