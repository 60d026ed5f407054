"""The clocks of an observer: the time of day for samples, a monotonic clock for pauses."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    def now_ms(self) -> int:
        """The time of day."""
        ...

    def ticks_ms(self) -> int:
        """A monotonic clock."""
        ...

    async def wait(self, until_ticks_ms: int, woken: asyncio.Event) -> None:
        """Wait until the moment comes, or until the event is set."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def wait(self, until_ticks_ms: int, woken: asyncio.Event) -> None:
        seconds = max(0.0, (until_ticks_ms - self.ticks_ms()) / 1000)
        try:
            async with asyncio.timeout(seconds):
                await woken.wait()
        except TimeoutError:
            pass
