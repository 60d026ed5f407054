"""Periodic chores of a node: checkpoints, retention, compaction, removal of files, snapshots, heartbeats.

Each chore has a period, which comes from the settings in force, and is due by the monotonic clock. A chore only starts
its work: what takes long goes on as a cooperative task (`cooperative_tasks`), and what waits for the disk in a thread
(`offload`). A chore that is due while its last run still goes on is skipped once.

===================  ================================================  ===============================================
chore                period (default)                                  does
===================  ================================================  ===============================================
heartbeat            broker.heartbeat.interval.ms (2 s)                keeps the own session
fencing              when the next session ends                        fences silent brokers
recovery points      log.flush.offset.checkpoint.interval.ms (60 s)    notes how far logs are synced, where they start
high watermarks      replica.high.watermark.checkpoint.interval.ms     notes what is committed
                     (5 s)
flush                1 s                                               syncs closed segments; what flush.ms asks for
retention            log.retention.check.interval.ms (5 min)           removes what retention allows
compaction           log.cleaner.backoff.ms (15 s)                     compacts the log that needs it most
removal              1 s                                               removes files whose time has come
producers            producer.id.expiration.check.interval.ms          forgets producers that were silent for long
                     (10 min)
connections          10 s                                              closes idle ones and those that hold up others
snapshot             1 s                                               snapshots the metadata, drops old ones
no-op                metadata.max.idle.interval.ms (off)               shows others that the leader lives
===================  ================================================  ===============================================
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from itertools import count
from typing import Final

from ottla.broker.loop.clock import Clock
from ottla.log.errors import StorageError

__all__ = ["Housekeeping", "Period"]

log = logging.getLogger(__name__)

_SLEEP_MAX_MS: Final = 1000

Period = Callable[[], int]


class Housekeeping:
    """The chores of a node and when they are due. A period is asked for after the run, which may have changed it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._due: list[tuple[int, int, Period, Callable[[], None]]] = []
        self._serial = count()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, period: Period, chore: Callable[[], None], first_ms: int | None = None) -> None:
        """Do a chore every `period()` milliseconds, asked anew each time; for the first time after `first_ms`."""
        at_ms = self._clock.monotonic_ms() + (period() if first_ms is None else first_ms)
        heapq.heappush(self._due, (at_ms, next(self._serial), period, chore))

    def start(self) -> None:
        self._watch()

    def run_due(self) -> None:
        """Do the chores that are due."""
        now_ms = self._clock.monotonic_ms()
        while self._due[0][0] <= now_ms:
            _, serial, period, chore = heapq.heappop(self._due)
            try:
                chore()
            except StorageError as error:
                log.warning("%s: %s", chore.__name__, error)  # whose directory is offline has said so already
            except Exception:
                log.exception("%s failed", chore.__name__)
            heapq.heappush(self._due, (now_ms + max(period(), 1), serial, period, chore))

    def follow_settings(self) -> None:
        """Settings have changed: what is due more often now need not wait for the end of its old period."""
        now_ms = self._clock.monotonic_ms()
        self._due = [
            (min(at_ms, now_ms + max(period(), 1)), serial, period, chore) for at_ms, serial, period, chore in self._due
        ]
        heapq.heapify(self._due)

    def _watch(self) -> None:
        wait_ms = min(max(self._due[0][0] - self._clock.monotonic_ms(), 1), _SLEEP_MAX_MS)
        self._timer = self._loop.call_later(wait_ms / 1000, self._tick)

    def _tick(self) -> None:
        self.run_due()
        self._watch()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
