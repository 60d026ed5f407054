"""Requests that wait, on a node's loop: deadlines fire, and whoever is woken is asked after the present turn."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final

from ottla.broker.loop.clock import Clock
from ottla.broker.loop.waiting import Waiter, Waiting

__all__ = ["Purgatory"]

_TIMER_SECONDS: Final = 0.0005
"""A timer that comes so much earlier than a deadline will do."""
_END_OF_TIME_MS: Final = 2**63


class Purgatory:
    """Takes waiters while it is open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.is_open = False
        self._loop = loop
        self._clock = clock
        self._waiting = Waiting()
        self._woken: dict[Hashable, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, waiter: Waiter) -> bool:
        """Let a request wait; False if there are too many, or the node stops: then it must be answered now."""
        if not self.is_open or not self._waiting.park(waiter):
            return False
        self._watch_deadlines()
        return True

    def remove(self, waiter: Waiter) -> None:
        """Forget a waiter: it was answered, or its connection is gone."""
        self._waiting.remove(waiter)

    def wake(self, key: Hashable) -> None:
        """Something has moved: ask those who wait for it once the present turn is over."""
        if self._waiting.is_awaited(key):
            if not self._woken:
                self._loop.call_soon(self._wake_now)
            self._woken[key] = None

    def _wake_now(self) -> None:
        woken, self._woken = self._woken, {}
        for key in woken:
            self._waiting.wake(key)

    def expire(self) -> None:
        """Answer all whose time is over."""
        self._timer = None
        self._waiting.expire(self._clock.monotonic_ms())
        self._watch_deadlines()

    def close(self) -> None:
        """Take nobody any more, and answer those who wait with what there is."""
        self.is_open = False
        self._waiting.expire(_END_OF_TIME_MS)

    def _watch_deadlines(self) -> None:
        next_at_ms = self._waiting.next_deadline()
        if next_at_ms is None:
            return
        at = self._loop.time() + max(next_at_ms - self._clock.monotonic_ms(), 0) / 1000
        if self._timer is not None:
            if self._timer.when() <= at + _TIMER_SECONDS and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self.expire)
