"""The delayed operations of a node on its event loop: a timer for deadlines, and wake-ups after the present turn."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final

from ottla.broker.loop.clock import Clock
from ottla.broker.loop.delayed_operations import DelayedOperation, DelayedOperations

__all__ = ["Purgatory"]

_TIMER_SECONDS: Final = 0.0005
"""A timer that fires this much before a deadline is good enough."""
_END_OF_TIME_MS: Final = 2**63


class Purgatory:
    """Parks delayed operations while it is open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.is_open = False
        self._loop = loop
        self._clock = clock
        self._delayed = DelayedOperations()
        self._woken: dict[Hashable, None] = {}
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        """When the timer fires. uvloop's handles for what is due already do not tell."""

    def __len__(self) -> int:
        return len(self._delayed)

    def park(self, operation: DelayedOperation) -> bool:
        """Park an operation; False if there are too many or the node stops: then the caller answers at once."""
        if not self.is_open or not self._delayed.park(operation):
            return False
        self._watch_deadlines()
        return True

    def remove(self, operation: DelayedOperation) -> None:
        """Remove an operation that was answered, or whose connection is gone."""
        self._delayed.remove(operation)

    def wake(self, key: Hashable) -> None:
        """Let the operations under a key try to complete, after the present turn of the loop."""
        if self._delayed.is_awaited(key):
            if not self._woken:
                self._loop.call_soon(self._wake_now)
            self._woken[key] = None

    def _wake_now(self) -> None:
        woken, self._woken = self._woken, {}
        for key in woken:
            self._delayed.wake(key)

    def expire(self) -> None:
        """Answer all operations whose deadline has passed."""
        self._timer = None
        self._delayed.expire(self._clock.monotonic_ms())
        self._watch_deadlines()

    def close(self) -> None:
        """Park no more operations, and answer all that are parked as if their deadlines had passed."""
        self.is_open = False
        self._delayed.expire(_END_OF_TIME_MS)

    def _watch_deadlines(self) -> None:
        next_at_ms = self._delayed.next_deadline()
        if next_at_ms is None:
            return
        at = self._loop.time() + max(next_at_ms - self._clock.monotonic_ms(), 0) / 1000
        if self._timer is not None:
            if self._timer_at <= at + _TIMER_SECONDS and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer, self._timer_at = self._loop.call_at(at, self.expire), at
