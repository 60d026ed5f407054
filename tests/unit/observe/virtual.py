"""A clock that only moves when everybody waits, and probes and sinks that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ottla.health.samples import Sample
from ottla.observe.schedule import NEVER_MS
from ottla.observe.sinks import UnwrittenError

SETTLING = 20
"""So many turns of the event loop are enough for all that can go on without time passing."""
START_MS = 1_700_000_000_000


class VirtualClock:
    """`wait` lets all others do what they can, then time jumps to the earliest moment that somebody waits for."""

    def __init__(self) -> None:
        self.ms = 0
        self._waiting: list[int] = []
        self._happened = 0

    def now_ms(self) -> int:
        return START_MS + self.ms

    def ticks_ms(self) -> int:
        return self.ms

    async def wait(self, until_ticks_ms: int, woken: asyncio.Event) -> None:
        self._waiting.append(until_ticks_ms)
        self._happened += 1
        try:
            while self.ms < until_ticks_ms and not woken.is_set():
                before = self._happened
                for _ in range(SETTLING):
                    await asyncio.sleep(0)
                is_quiet = before == self._happened and not woken.is_set()
                if is_quiet and until_ticks_ms == min(self._waiting) and until_ticks_ms < NEVER_MS:
                    self.ms = max(self.ms, until_ticks_ms)
        finally:
            self._waiting.remove(until_ticks_ms)
            self._happened += 1


class Metadata:
    cluster_id = "cluster-1"


class NoClient:
    """For probes that ask nobody."""

    metadata = Metadata()
    is_connected = True

    def try_again(self) -> None:
        """Nobody is left alone."""


class ListSink:
    """Keeps what it is given; `failing` makes it refuse."""

    def __init__(self) -> None:
        self.written: list[Sample] = []
        self.failing = False
        self.attempts = 0
        self.is_closed = False

    async def write(self, samples: Sequence[Sample]) -> None:
        self.attempts += 1
        if self.failing:
            raise UnwrittenError(samples, OSError("no room"))
        self.written += samples

    async def close(self) -> None:
        self.is_closed = True
