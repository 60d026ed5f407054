"""Two clocks: one for timers, which never goes back, and one for records, which people read.

Tests put `ManualClock` in their place and move it.
"""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "ShiftedClock", "SystemClock"]


class Clock(Protocol):
    def monotonic_ms(self) -> int:
        """For timers and deadlines."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for records and retention."""

    def precise_ns(self) -> int:
        """Nanoseconds, to measure how long a piece of work took."""

    def precise_s(self) -> float:
        """The same in seconds."""


class SystemClock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def precise_ns(self) -> int:
        return time.perf_counter_ns()

    def precise_s(self) -> float:
        return time.perf_counter()


class ShiftedClock(SystemClock):
    """The system's time plus an offset, so that an hour can pass at once for a node under test."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.shift_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self.shift_ms


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._monotonic_ms = 0
        self._wall_ms = wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def precise_ns(self) -> int:
        return time.perf_counter_ns()

    def precise_s(self) -> float:
        return time.perf_counter()

    def advance(self, ms: int) -> None:
        self._monotonic_ms += ms
        self._wall_ms += ms
