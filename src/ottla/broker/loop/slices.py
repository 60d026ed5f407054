"""Long work in small pieces between the turns of the loop.

Work is a generator that pauses every so often. It runs for at most two milliseconds at a time and then rests for three
times as long as it ran, so that requests wait little and most of the time is theirs. Urgent work, which requests wait
for, rests only as long as it ran.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Generator
from typing import Any, Final, NamedTuple

__all__ = ["Slices"]

log = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.002
REST_FACTOR: Final = 3
URGENT_REST_FACTOR: Final = 1

Work = Generator[Any, None, Any]


class _Entry(NamedTuple):
    name: str
    work: Work
    is_urgent: bool


class Slices:
    """Works one after the other, each under a name; a name that is there already is not taken twice.

    Urgent ones, which requests wait for, go before all others, even before one that is under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._works: deque[_Entry] = deque()
        self._timer: asyncio.Handle | None = None

    def __contains__(self, name: object) -> bool:
        return any(each.name == name for each in self._works)

    def __len__(self) -> int:
        return len(self._works)

    def add(self, name: str, work: Work, *, is_urgent: bool = False) -> bool:
        """Queue work; False if work of that name is queued or under way."""
        if name in self:
            work.close()
            return False
        entry = _Entry(name, work, is_urgent)
        if is_urgent:
            self._works.appendleft(entry)
        else:
            self._works.append(entry)
        if self._timer is None:
            self._timer = self._loop.call_soon(self._run)
        return True

    def _run(self) -> None:
        began = time.monotonic()
        self.run_for(SLICE_SECONDS)
        took = time.monotonic() - began
        self._timer = self._loop.call_later(took * self._rest_factor(), self._run) if self._works else None

    def _rest_factor(self) -> int:
        return URGENT_REST_FACTOR if self._works[0].is_urgent else REST_FACTOR

    def run_for(self, seconds: float) -> None:
        """Go on with the work for a while."""
        until = time.monotonic() + seconds
        while self._works:
            entry = self._works[0]
            try:
                next(entry.work)
            except StopIteration:
                self._works.remove(entry)  # its last step may have put another before it
            except Exception:
                log.exception("%s failed", entry.name)
                self._works.remove(entry)
            if time.monotonic() >= until:
                return

    def close(self) -> None:
        """Give up what is not done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entry in self._works:
            entry.work.close()
        self._works.clear()
