"""A virtual clock, which stands still until a test moves it."""

from __future__ import annotations

from typing import Final

__all__ = ["WALL_START_MS", "VirtualClock"]

WALL_START_MS: Final = 1_700_000_000_000
"""The wall-clock time when the monotonic clock is 0."""


class VirtualClock:
    """The two clocks of a computer: `monotonic_ms` never goes back; the wall clock may be set."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._wall_offset_ms = WALL_START_MS

    def monotonic_ms(self) -> int:
        return self._now_ms

    def wall_ms(self) -> int:
        return self._now_ms + self._wall_offset_ms

    def precise_ns(self) -> int:
        return self._now_ms * 1_000_000

    def precise_s(self) -> float:
        return self._now_ms / 1000

    def advance_to(self, at_ms: int) -> None:
        self._now_ms = max(self._now_ms, at_ms)

    def jump_wall(self, by_ms: int) -> None:
        """Set the wall clock, forward or back."""
        self._wall_offset_ms += by_ms
