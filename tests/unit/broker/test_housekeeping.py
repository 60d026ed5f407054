"""Chores by the clock: what they write, remove and compact, and that long work leaves room for others."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.loop.clock import SystemClock
from ottla.broker.loop.cooperative_tasks import REST_FACTOR, SLICE_SECONDS, CooperativeTasks
from ottla.broker.loop.offload import Offload

# --- tasks -----------------------------------------------------------------------------------------------------------


def test_long_work_leaves_most_of_the_time_to_others():
    async def life() -> tuple[int, int]:
        tasks = CooperativeTasks(asyncio.get_running_loop(), SystemClock())
        turns = steps = 0

        def work() -> Generator[None, None, None]:
            nonlocal steps
            until = asyncio.get_running_loop().time() + SLICE_SECONDS / 4
            for _ in range(40):
                while asyncio.get_running_loop().time() < until:
                    pass
                until = asyncio.get_running_loop().time() + SLICE_SECONDS / 4
                steps += 1
                yield

        assert tasks.add_once("work", work())
        assert not tasks.add_once("work", work()), "not twice"
        while len(tasks):
            await asyncio.sleep(0)
            turns += 1
        return turns, steps

    turns, steps = asyncio.run(life())
    assert steps == 40
    assert turns > 40 / 5 * REST_FACTOR, "the loop went on in between"


def test_work_that_fails_does_not_stop_the_rest(caplog: pytest.LogCaptureFixture):
    done: list[str] = []

    def good() -> Generator[None, None, None]:
        yield
        done.append("good")

    def bad() -> Generator[None, None, None]:
        yield
        raise RuntimeError("oh")

    async def life() -> None:
        tasks = CooperativeTasks(asyncio.get_running_loop(), SystemClock())
        tasks.add("bad", bad())
        tasks.add("good", good())
        tasks.run_for(1)
        tasks.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(life())
    assert done == ["good"]
    assert "bad failed" in caplog.text


def test_work_that_is_given_up_is_closed():
    ended: list[str] = []

    def work() -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            ended.append("closed")

    async def life() -> None:
        tasks = CooperativeTasks(asyncio.get_running_loop(), SystemClock())
        tasks.add_once("work", work())
        tasks.run_for(0)
        tasks.close()

    asyncio.run(life())
    assert ended == ["closed"]


# --- threads ----------------------------------------------------------------------------------------------------------


def test_what_follows_work_happens_once_on_the_loop():
    async def life() -> list[tuple[str, bool]]:
        seen: list[tuple[str, bool]] = []
        main = threading.current_thread()
        offload = Offload(asyncio.get_running_loop())
        done = asyncio.Event()

        def note(what: str) -> None:
            seen.append((what, threading.current_thread() is main))

        def then() -> None:
            note("then")
            done.set()

        offload(lambda: note("work"), then)
        await done.wait()
        job = offload(lambda: note("work"), lambda: note("then"))
        job.finish()
        job.finish()
        assert job.is_finished
        await asyncio.sleep(0)
        offload.close()
        return seen

    assert asyncio.run(life()) == [("work", False), ("then", True)] * 2


def test_everything_can_be_waited_for_with_what_follows_from_it():
    async def life() -> list[int]:
        offload = Offload(asyncio.get_running_loop())
        seen: list[int] = []

        def next_after(number: int) -> None:
            seen.append(number)
            if number < 3:
                offload(lambda: None, lambda: next_after(number + 1))

        offload(lambda: None, lambda: next_after(1))
        offload.finish_all()
        assert len(offload) == 0
        offload.close()
        return seen

    assert asyncio.run(life()) == [1, 2, 3]


def test_work_that_fails_is_told_and_goes_on(caplog: pytest.LogCaptureFixture):
    async def life() -> bool:
        offload = Offload(asyncio.get_running_loop())
        followed = []

        def fail() -> None:
            raise OSError("oh")

        offload(fail, lambda: followed.append(1)).finish()
        offload.close()
        return bool(followed)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(life())
    assert "oh" in caplog.text


def test_what_requests_wait_for_goes_first():
    done: list[str] = []

    def work(name: str, *then: str) -> Generator[None, None, None]:
        for _ in range(2):
            done.append(name)
            yield
        for each in then:
            tasks.add(each, work(each), is_urgent=True)

    async def run() -> None:
        nonlocal tasks
        tasks = CooperativeTasks(asyncio.get_running_loop(), SystemClock())
        tasks.add("long", work("long"))
        tasks.run_for(0)
        tasks.add("urgent", work("urgent", "more"), is_urgent=True)
        while len(tasks):
            tasks.run_for(0)
        tasks.close()

    tasks: CooperativeTasks
    asyncio.run(run())
    assert done == ["long", "urgent", "urgent", "more", "more", "long"]


def endless_work(now: list[float]) -> Generator[None, None, None]:
    """Each step takes a slice."""
    while True:
        now[0] += SLICE_SECONDS
        yield


def test_work_rests_for_some_times_as_long_as_it_ran() -> None:
    now, rests = [100.0], []

    class Loop:
        def call_soon(self, call: Any) -> Any:
            call()

        def call_later(self, seconds: float, call: Any) -> Any:
            rests.append(seconds)

    clock = SimpleNamespace(precise_s=lambda: now[0])
    CooperativeTasks(Loop(), clock).add("work", endless_work(now))  # type: ignore[arg-type]
    assert rests == [pytest.approx(SLICE_SECONDS * REST_FACTOR)]


def test_urgent_work_lets_the_loop_turn_and_does_not_wait() -> None:
    now, turns = [100.0], []

    class Loop:
        def call_soon(self, call: Any) -> Any:
            turns.append(call)

        def call_later(self, seconds: float, call: Any) -> Any:
            raise AssertionError("nobody needs the loop")

    clock = SimpleNamespace(precise_s=lambda: now[0])
    CooperativeTasks(Loop(), clock).add("work", endless_work(now), is_urgent=True)  # type: ignore[arg-type]
    for number in range(1, 4):
        turns.pop()()
        assert now[0] == pytest.approx(100 + number * SLICE_SECONDS), "a slice in each turn"
