"""Who ends a turn, when, and with whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.network.request import DelayedResponse
from ottla.broker.replicas.unit_of_work import PROBE_EVERY, UnitOfWork


class Loop:
    """Runs what was queued when told to."""

    def __init__(self) -> None:
        self.queued: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.queued.append(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        self.timers.append((seconds, call))
        return self

    def cancel(self) -> None:
        self.timers.pop()

    def run(self) -> None:
        queued, self.queued = self.queued, []
        for call in queued:
            call()


class Replicas:
    def __init__(self) -> None:
        self.writes = 0
        self.has_staged = False

    def write_staged(self) -> None:
        self.writes += 1


class Shard:
    """Counts how often it was flushed."""

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1


class Bench:
    def __init__(self) -> None:
        self.loop, self.replicas, self.shard = Loop(), Replicas(), Shard()
        self.clock = ManualClock()
        self.turns = UnitOfWork(self.loop, self.clock, self.replicas)  # type: ignore[arg-type]

    def serve_connection(self) -> None:
        """A request that writes, and the end of its connection's turn."""
        self.turns.is_attended = True
        self.turns.unflushed(self.shard)  # type: ignore[arg-type]
        self.turns.is_attended = False
        self.turns.end_connection()

    def serve_until_shared(self) -> None:
        for _ in range(PROBE_EVERY):
            self.serve_connection()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_lonely_connection_ends_its_turn_itself(bench: Bench) -> None:
    bench.serve_connection()
    assert bench.shard.flushes == 1
    assert bench.loop.queued == []


def test_what_no_connection_attends_to_is_queued_once(bench: Bench) -> None:
    bench.turns.unflushed(bench.shard)  # type: ignore[arg-type]
    bench.turns.unflushed(bench.shard)  # type: ignore[arg-type]
    assert bench.shard.flushes == 0
    assert len(bench.loop.queued) == 1
    bench.loop.run()
    assert bench.shard.flushes == 1


def test_a_probe_that_nobody_joins_is_the_last_for_a_while(bench: Bench) -> None:
    bench.serve_until_shared()
    assert bench.shard.flushes == PROBE_EVERY
    bench.serve_connection()
    assert bench.shard.flushes == PROBE_EVERY, "it is put off"
    bench.loop.run()
    assert bench.shard.flushes == PROBE_EVERY + 1
    bench.serve_connection()
    assert bench.loop.queued == []


def test_connections_that_are_at_work_together_end_together(bench: Bench) -> None:
    bench.serve_until_shared()
    for turn in range(1, 4):
        for _ in range(10):
            bench.serve_connection()
        assert len(bench.loop.queued) == 1
        bench.loop.run()
        assert bench.shard.flushes == PROBE_EVERY + turn


def test_what_a_connection_has_produced_is_written_in_any_case(bench: Bench) -> None:
    bench.serve_until_shared()
    writes = bench.replicas.writes
    bench.serve_connection()
    assert bench.replicas.writes == writes + 1


def test_one_timer_for_the_earliest(bench: Bench) -> None:
    first, second = Shard(), Shard()
    bench.turns.due_at(first, 500)  # type: ignore[arg-type]
    bench.turns.due_at(second, 700)  # type: ignore[arg-type]
    assert [seconds for seconds, _ in bench.loop.timers] == [0.5]
    bench.turns.due_at(second, 200)  # type: ignore[arg-type]
    assert [seconds for seconds, _ in bench.loop.timers] == [0.2]
    bench.turns.close()
    assert bench.loop.timers == []


def test_what_an_answer_stages_is_written_in_the_same_turn(bench: Bench) -> None:
    def take(answer: object) -> None:
        bench.replicas.has_staged = True

    def write() -> None:
        written.append(bench.replicas.has_staged)
        bench.replicas.has_staged = False

    written: list[bool] = []
    bench.replicas.write_staged = write  # type: ignore[method-assign]
    later = DelayedResponse()
    later.deliver_to(take)
    bench.turns.deliver(later, "answer")
    bench.loop.run()
    assert written == [False, True]


def test_a_shard_that_is_forgotten_is_due_no_more(bench: Bench) -> None:
    bench.turns.due_at(bench.shard, 500)  # type: ignore[arg-type]
    bench.turns.unflushed(bench.shard)  # type: ignore[arg-type]
    bench.turns.forget(bench.shard)  # type: ignore[arg-type]
    bench.loop.run()
    assert bench.shard.flushes == 0
    bench.clock.advance(500)
    bench.turns.expire()  # would fail: it cannot expire
