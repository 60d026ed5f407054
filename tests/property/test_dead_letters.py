"""A dead-letter queue changes nothing but the way: a share partition that sends what it gives up ends like one that
does not, and sends every record that it gives up once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.share.partition import Settings
from ottla.share.partition.events import DeadLettersSent
from ottla.share.partition.states import RecordState
from tests.unit.share.partition.bench import Bench

LIMIT = 3
LOG = ((0, 4), (5, 9), (10, 11), (12, 19))
MEMBERS = ("a", "b")

steps = st.one_of(
    st.tuples(st.just("fetch"), st.sampled_from(MEMBERS), st.integers(1, 9)),
    st.tuples(
        st.just("acknowledge"), st.sampled_from(MEMBERS), st.integers(0, 19), st.integers(0, 6), st.integers(1, 3)
    ),
    st.tuples(st.just("release"), st.sampled_from(MEMBERS)),
    st.tuples(st.just("advance"), st.integers(1, 40_000)),
)


def take(bench: Bench, step: Any) -> object:
    name, *given_ = step
    if name == "fetch":
        return bench.fetch(given_[0], given_[1])
    if name == "acknowledge":
        member_id, first, more, kind = given_
        return bench.acknowledge((first, first + more, (kind,)), member_id=member_id)
    if name == "release":
        return bench.release(given_[0])
    return bench.advance(given_[0]).due_at_ms


def send(bench: Bench) -> list[int]:
    """Let all letters arrive; gives their offsets."""
    letters, bench.letters = bench.letters, []
    for each in letters:
        bench.step(DeadLettersSent(each.first_offset, each.last_offset))
    return [offset for each in letters for offset in range(each.first_offset, each.last_offset + 1)]


def seen(bench: Bench) -> tuple[int, int, int, dict[int, tuple[int, int, str]]]:
    window = bench.partition.window
    states = {
        offset: (int(run.state), run.delivery_count, run.member_id)
        for run in window.runs()
        for offset in range(run.first, run.last + 1)
        if offset >= window.start
    }
    return window.start, window.end, window.complete_count, states


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=60))
def test_both_end_alike(plan: list[Any]) -> None:
    plain = Bench(*LOG, settings=Settings(delivery_count_limit=LIMIT))
    queued = Bench(*LOG, settings=Settings(delivery_count_limit=LIMIT, has_dead_letters=True))
    sent: list[int] = []
    for step in plan:
        assert take(plain, step) == take(queued, step)
        sent += send(queued)
        assert seen(plain) == seen(queued)
    given_up = {
        offset
        for write in plain.writes
        for batch in write.batches
        if batch.delivery_state == RecordState.ARCHIVED
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert sorted(sent) == sorted(given_up)
