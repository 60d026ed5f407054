"""How much a batch takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.topic.limits import Patience, limited
from tests.unit.spark.fake_cluster import at


def test_shares_follow_what_is_there():
    ends = limited(100, {at(0): 0, at(1): 10, at(2): 5}, {at(0): 800, at(1): 160, at(2): 55})
    assert ends == {at(0): 80, at(1): 25, at(2): 10}


def test_little_is_not_starved():
    assert limited(10, {at(0): 0, at(1): 0}, {at(0): 100_000, at(1): 3}) == {at(0): 9, at(1): 1}


def test_less_than_the_limit_is_taken_whole():
    assert limited(100, {at(0): 0}, {at(0): 7}) == {at(0): 7}


def test_nothing_new_stays():
    assert limited(5, {at(0): 7}, {at(0): 7}) == {at(0): 7}


@given(
    st.integers(1, 10_000),
    st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1),
)
def test_no_end_lies_outside_and_a_batch_is_never_empty(limit: int, logs: dict[int, tuple[int, int]]):
    start = {at(index): first for index, (first, _) in logs.items()}
    latest = {at(index): first + size for index, (first, size) in logs.items()}
    ends = limited(limit, start, latest)
    assert all(start[each] <= end <= latest[each] for each, end in ends.items())
    taken = sum(ends[each] - start[each] for each in ends)
    assert taken <= limit + len(logs)
    assert taken > 0 or latest == start


class Clock:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_batch_does_not_wait(clock: Clock):
    assert Patience(10, 1000, clock).is_enough({at(0): 0}, {at(0): 1})


def test_a_batch_waits_for_enough_or_for_the_delay(clock: Clock):
    patience = Patience(10, 1000, clock)
    assert patience.is_enough({at(0): 0}, {at(0): 1})
    clock.now_ms = 999
    assert not patience.is_enough({at(0): 1}, {at(0): 10})
    assert patience.is_enough({at(0): 1}, {at(0): 11})
    clock.now_ms = 1998
    assert not patience.is_enough({at(0): 11}, {at(0): 12})
    clock.now_ms = 1999
    assert patience.is_enough({at(0): 11}, {at(0): 12})
