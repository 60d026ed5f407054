"""The queue of targets for a child process: one at a time, idle ones ended, large groups spared by the collector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from ottla.broker.coordinators.target_computations import IDLE_SECONDS, SPARED_BYTES_MIN, TargetComputations
from ottla.broker.loop.child_process import ChildFailure
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.assignors.computation import Choice
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.wire.errors import ErrorCode


class Worker:
    def __init__(self, entry: str) -> None:
        self.calls: list[tuple[int, int]] = []
        self.close_count = 0
        self.failure: str | None = None

    def call(self, request: Sequence[bytes], limit_ms: int) -> Sequence[bytes]:
        self.calls.append((len(request) - 1, limit_ms))
        if self.failure is not None:
            raise ChildFailure(self.failure)
        return [b"answer"]

    def close(self) -> None:
        self.close_count += 1


class Loop:
    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        self.timers.append((seconds, call))
        return self

    def cancel(self) -> None:
        self.timers.clear()


class Ports:
    """A node whose threads do their work when the test says so."""

    def __init__(self) -> None:
        self.fake_loop = Loop()
        self.loop = cast(asyncio.AbstractEventLoop, self.fake_loop)
        self.settings: Any = {"ottla.group.assignor.timeout.ms": 1_234}
        self.jobs: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.spared_count = 0

    def offload(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self.jobs.append((work, then))

    def spare_objects(self) -> None:
        self.spared_count += 1

    def finish(self) -> None:
        work, then = self.jobs.pop(0)
        work()
        then()


class Bench:
    def __init__(self) -> None:
        self.node = Ports()
        self.workers: list[Worker] = []
        self.computations = TargetComputations(self.node, self._worker)  # type: ignore[arg-type]
        self.outcomes: list[Outcome] = []

    def _worker(self, entry: str) -> Worker:
        self.workers.append(Worker(entry))
        return self.workers[-1]

    def compute(self, *parts: bytes, is_own: bool = False, group_id: str = "g") -> None:
        effect = ComputeTarget("consumer", group_id, 1, Choice("uniform", is_own), parts)
        self.computations.performers()[ComputeTarget](effect, self.outcomes.append)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_one_at_a_time_with_its_time_limit(bench: Bench):
    bench.compute(b"a")
    bench.compute(b"a", b"b")
    assert len(bench.node.jobs) == 1
    bench.node.finish()
    assert bench.outcomes == [Outcome(value=[b"answer"])]
    bench.node.finish()
    assert bench.workers[0].calls == [(1, 1_234), (2, 1_234)]
    assert not bench.node.jobs


def test_those_of_users_do_not_wait_for_others(bench: Bench):
    bench.compute(b"a")
    bench.compute(b"a", is_own=True)
    assert len(bench.node.jobs) == 2
    assert len(bench.workers) == 2


def test_a_failure_names_the_assignor(bench: Bench):
    bench.workers[0].failure = "no answer within 1234 ms"
    bench.compute(b"a")
    bench.node.finish()
    told = "the assignor uniform: no answer within 1234 ms"
    assert bench.outcomes == [Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, message=told)]


def test_a_child_without_work_is_ended(bench: Bench):
    bench.compute(b"a")
    bench.node.finish()
    ((seconds, end),) = bench.node.fake_loop.timers
    assert seconds == IDLE_SECONDS
    end()
    bench.compute(b"a")  # waits until the child is gone
    bench.node.finish()
    assert bench.workers[0].close_count == 1
    bench.node.finish()
    assert len(bench.outcomes) == 2


def test_work_puts_the_end_off(bench: Bench):
    bench.compute(b"a")
    bench.node.finish()
    bench.compute(b"a")
    assert not bench.node.fake_loop.timers
    bench.node.finish()
    bench.computations.close()
    assert not bench.node.fake_loop.timers
    assert [worker.close_count for worker in bench.workers] == [1, 1]


def test_objects_are_spared_when_a_group_has_doubled(bench: Bench):
    for size in (1, SPARED_BYTES_MIN, SPARED_BYTES_MIN + 1, 2 * SPARED_BYTES_MIN, 3 * SPARED_BYTES_MIN):
        bench.compute(bytes(size))
    assert bench.node.spared_count == 2
    bench.compute(bytes(SPARED_BYTES_MIN), group_id="other")
    assert bench.node.spared_count == 3
