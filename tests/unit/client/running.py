"""Coroutines of tests, run to their end or to a time limit."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any

TIME_LIMIT_S = 30
BUSY_TURN_S = 0.005


class _CountingSelector(selectors.DefaultSelector):
    """Counts the time that passes, but of each turn of the loop in which there was something to do only a little."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0
        self._since_s = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout)
        now_s = time.monotonic()
        is_idle = bool(timeout) and not events
        self.passed_s += min(now_s - self._since_s, BUSY_TURN_S + (timeout or 0.0) * is_idle)
        self._since_s = now_s
        return events


class _UnhurriedLoop(asyncio.SelectorEventLoop):
    """No deadline passes because the machine is slow."""

    def __init__(self) -> None:
        self._counting = _CountingSelector()
        super().__init__(self._counting)

    def time(self) -> float:
        return self._counting.passed_s


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine within a bound of time; it must leave no task behind."""

    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_S):
            await body()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    with asyncio.Runner(debug=True, loop_factory=_UnhurriedLoop) as runner:
        runner.run(bounded())
