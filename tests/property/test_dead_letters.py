"""A dead-letter queue changes nothing but the way: a share partition that sends what it gives up ends like one that
does not, and sends every record that it gives up once. If its leader is killed in between, none is forgotten."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.share.partition import SharePartitionSettings
from ottla.core.share.partition.events import DeadLettersSent, StateBatch, WriteDone, WriteFailed
from ottla.core.share.partition.states import RecordState
from ottla.core.share.state.batches import Batch, merge
from ottla.wire.errors import ErrorCode
from tests.unit.core.share.partition.bench import Bench

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
    plain = Bench(*LOG, settings=SharePartitionSettings(delivery_count_limit=LIMIT))
    queued = Bench(*LOG, settings=SharePartitionSettings(delivery_count_limit=LIMIT, has_dead_letters=True))
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


# --- crashes ----------------------------------------------------------------------------------------------------------

happenings = st.one_of(
    steps,
    st.tuples(st.just("write"), st.booleans()),
    st.tuples(st.just("send"), st.integers(0, 5)),
    st.tuples(st.just("crash")),
)


class Scene:
    """A share partition whose writes and letters take their time, and whose leader may be killed."""

    def __init__(self) -> None:
        self.settings = SharePartitionSettings(delivery_count_limit=LIMIT, has_dead_letters=True)
        self.start = 0
        self.kept: list[Batch] = []
        self.sent: set[int] = set()
        self.bench = self._load()

    def _load(self) -> Bench:
        bench = Bench(*LOG, start=self.start, settings=self.settings, batches=[StateBatch(*each) for each in self.kept])
        bench.writes_at_once = False
        return bench

    def take(self, happening: Any) -> None:
        name = happening[0]
        if name == "write":
            self.write(is_done=happening[1])
        elif name == "send":
            self.send(happening[1])
        elif name == "crash":
            self.bench = self._load()
        else:
            take(self.bench, happening)
        self.check()

    def write(self, *, is_done: bool) -> None:
        """The oldest write is done, or fails."""
        if not self.bench.held_back:
            return
        write = self.bench.held_back.pop(0)
        if not is_done:
            self.bench.step(WriteFailed(write.write_id, ErrorCode.NOT_COORDINATOR))
            return
        self.start = write.start_offset
        self.kept = merge(self.kept, [Batch(*each) for each in write.batches], self.start)
        self.bench.step(WriteDone(write.write_id))

    def send(self, at: int) -> None:
        """One of the letters arrives."""
        if at < len(self.bench.letters):
            letter = self.bench.letters.pop(at)
            self.sent |= set(range(letter.first_offset, letter.last_offset + 1))
            self.bench.step(DeadLettersSent(letter.first_offset, letter.last_offset))

    def check(self) -> None:
        """Nothing is finished by being given up that is not in the queue."""
        for batch in self.kept:
            if batch.delivery_state == RecordState.ARCHIVED:
                assert set(range(batch.first_offset, batch.last_offset + 1)) <= self.sent

    def settle(self) -> None:
        """Let everything under way come to its end."""
        while self.bench.held_back or self.bench.letters:
            self.write(is_done=True)
            self.send(0)
        self.check()


@settings(max_examples=150, deadline=None)
@given(st.lists(happenings, max_size=80))
def test_no_letter_is_lost_by_a_crash(plan: list[Any]) -> None:
    scene = Scene()
    for happening in plan:
        scene.take(happening)
    scene.take(("crash",))
    scene.settle()
    assert not any(
        batch.delivery_state == RecordState.ARCHIVING for batch in scene.kept if batch.first_offset >= scene.start
    )
