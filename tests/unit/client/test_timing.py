"""Pauses grow, stay below their bound, and end before the deadline."""

from ottla.client.backoff import Backoff, Deadline


def middle() -> float:
    return 0.5


def test_pauses_double_up_to_the_bound():
    backoff = Backoff(100, 1000, random=middle)
    assert [backoff.next_ms() for _ in range(6)] == [100, 200, 400, 800, 1000, 1000]
    assert backoff.attempts == 6


def test_pauses_differ_by_a_fifth():
    assert Backoff(100, 1000, random=lambda: 0.0).next_ms() == 80
    assert round(Backoff(100, 1000, random=lambda: 1.0).next_ms()) == 120


def test_many_attempts_overflow_nothing():
    backoff = Backoff(1, 10, random=middle)
    backoff.attempts = 100_000
    assert backoff.next_ms() == 10


def test_a_deadline_counts_down():
    now = 5.0
    deadline = Deadline(1500, now_s=lambda: now)
    assert (deadline.left_ms, deadline.passed) == (1500, False)
    now = 6.5
    assert (deadline.left_ms, deadline.passed) == (0, True)
    now = 9.0
    assert deadline.left_s == 0
