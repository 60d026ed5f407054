"""Long work on the event loop, done in small pieces so that requests are served in between.

A task is a generator that yields often. It runs for at most two milliseconds at a time, and then the loop serves
requests for three times as long. An urgent task, for which requests wait, only lets the loop turn once: whatever has
come by then is served, and nobody waits for a loop that has nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock

__all__ = ["CooperativeTasks"]

log = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.002
REST_FACTOR: Final = 3

Work = Generator[Any, None, Any]


class _Entry(NamedTuple):
    name: str
    work: Work
    is_urgent: bool


class CooperativeTasks:
    """A queue of tasks, each with a name.

    Urgent tasks, for which requests wait, go before all others, even before one that has begun.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._works: deque[_Entry] = deque()
        self._timer: asyncio.Handle | None = None

    def __contains__(self, name: object) -> bool:
        return any(each.name == name for each in self._works)

    def __len__(self) -> int:
        return len(self._works)

    def add_once(self, name: str, work: Work, *, is_urgent: bool = False) -> bool:
        """Queue a task; False, and it is dropped, if one of that name is queued or has begun."""
        if name in self:
            work.close()
            return False
        self.add(name, work, is_urgent=is_urgent)
        return True

    def add(self, name: str, work: Work, *, is_urgent: bool = False) -> None:
        """Queue a task, whatever else has its name."""
        entry = _Entry(name, work, is_urgent)
        if is_urgent:
            self._works.appendleft(entry)
        else:
            self._works.append(entry)
        if self._timer is None:
            self._timer = self._loop.call_soon(self._run)

    def _run(self) -> None:
        began = self._clock.precise_s()
        self.run_for(SLICE_SECONDS)
        took = self._clock.precise_s() - began
        if not self._works:
            self._timer = None
        elif self._works[0].is_urgent:
            self._timer = self._loop.call_soon(self._run)
        else:
            self._timer = self._loop.call_later(took * REST_FACTOR, self._run)

    def run_for(self, seconds: float) -> None:
        """Run tasks for a while."""
        until = self._clock.precise_s() + seconds
        while self._works:
            entry = self._works[0]
            try:
                next(entry.work)
            except StopIteration:
                self._works.remove(entry)  # its last step may have put another before it
            except Exception:
                log.exception("%s failed", entry.name)
                self._works.remove(entry)
            if self._clock.precise_s() >= until:
                return

    def close(self) -> None:
        """Drop all tasks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entry in self._works:
            entry.work.close()
        self._works.clear()
