"""Deadlines and pauses between attempts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from ottla.client.clock import monotonic_s

__all__ = ["Backoff", "Deadline"]

JITTER: Final = 0.2
"""A pause is up to a fifth shorter or longer, so that many clients do not come back at the same moment."""
GROWTH: Final = 2


class Deadline:
    """A moment on the monotonic clock until which something may be tried."""

    __slots__ = ("_now_s", "at_s")

    def __init__(self, after_ms: float, now_s: Callable[[], float] = monotonic_s) -> None:
        self._now_s = now_s
        self.at_s = now_s() + after_ms / 1000

    @property
    def left_s(self) -> float:
        return max(0.0, self.at_s - self._now_s())

    @property
    def left_ms(self) -> int:
        return int(self.left_s * 1000)

    @property
    def passed(self) -> bool:
        return self._now_s() >= self.at_s


class Backoff:
    """Pauses that grow from `first_ms` to `max_ms`, as Kafka's clients make them (KIP-580)."""

    def __init__(self, first_ms: float, max_ms: float, random: Callable[[], float] = random.random) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._random = random
        self.attempts = 0

    def next_ms(self) -> float:
        """How long the next pause is."""
        # The exponent is bounded: after some 30 doublings any first pause has reached any bound.
        plain_ms = min(self._first_ms * float(GROWTH ** min(self.attempts, 30)), self._max_ms)
        self.attempts += 1
        return plain_ms * (1 - JITTER + 2 * JITTER * self._random())

    async def pause(self, deadline: Deadline) -> bool:
        """Wait before the next attempt; False, at once, if the deadline would pass meanwhile."""
        pause_s = self.next_ms() / 1000
        if deadline.left_s <= pause_s:
            return False
        await asyncio.sleep(pause_s)
        return True
