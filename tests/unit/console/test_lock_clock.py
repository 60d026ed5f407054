"""Clocks of locks: one for each second in which locks of a member end, and how much of each is left."""

import re

from ottla.console.html.lock_clock import CLOCKS_MAX, Lock, lock_clocks, time_left, together


def test_locks_that_end_together_are_one_clock():
    locks = [Lock(11_900, "b", 5), Lock(11_100, "b", 2), Lock(11_500, "a", 1), Lock(2_000, "b", 7)]
    assert together(locks) == [Lock(2_000, "b", 7), Lock(11_100, "b", 7, 2), Lock(11_500, "a", 1)]


def test_a_clock_shows_what_is_left():
    text = lock_clocks([Lock(7_500, "<worker>", 20, 3)], 30_000)
    assert 'stroke-dashoffset="75"' in text
    assert 'data-left="7500" data-whole="30000"' in text
    assert "&lt;worker&gt;: 20 records in 3 ranges" in text
    assert "7.5 s" in text
    assert "style=" not in text


def test_without_the_length_of_a_lock_there_is_only_text():
    assert "<svg" not in lock_clocks([Lock(7_500, "a", 1)], None)
    assert "7.5 s" in lock_clocks([Lock(7_500, "a", 1)], None)


def test_a_lock_that_has_run_out():
    assert time_left(-50) == '<span data-left="0">over</span>'
    assert 'stroke-dashoffset="100"' in lock_clocks([Lock(-50, "a", 1)], 30_000)


def test_there_are_never_too_many():
    text = lock_clocks([Lock(at, "a", 1) for at in range(60)], 100)
    assert len(re.findall("<svg", text)) == CLOCKS_MAX
    assert "and 10 more" in text
    assert lock_clocks([], 100) == ""
