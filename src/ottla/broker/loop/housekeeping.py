"""What a node does by the clock: checkpoints, retention, compaction, removal of files, snapshots, heartbeats.

Each chore has a period, which comes from the settings in force, and is due by the clock of timers. Chores only begin
things: what takes long goes on in slices on the loop (`slices`), what waits for the disk in threads (`offload`). One
that is due while its last run still goes on is left out once.

===================  ================================================  ===============================================
chore                period (default)                                  does
===================  ================================================  ===============================================
heartbeat            broker.heartbeat.interval.ms (2 s)                keeps the own session, fences silent brokers
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
import gc
import heapq
import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final

from ottla.broker.controller.metadata_chores import MetadataChores
from ottla.broker.loop.warming import Warming
from ottla.broker.replicas.log_chores import LogChores
from ottla.log.errors import StorageError

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["Housekeeping"]

log = logging.getLogger(__name__)

_SECOND_MS: Final = 1000
_IDLE_CHECK_MS: Final = 10_000
_SLEEP_MAX_MS: Final = 1000
_FREEZE_EVERY: Final = 1000
"""Partitions that came since the last time."""

Period = Callable[[], int]


class Housekeeping:
    """The chores of a node and when they are due."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.logs = LogChores(node)
        self.metadata = MetadataChores(node)
        self._due: list[tuple[int, int, Period, Callable[[], None]]] = []
        self._serial = count()
        self._timer: asyncio.TimerHandle | None = None
        self._warming = Warming(node.loop)
        self._frozen_count = len(node.replicas.by_key)
        self._plan()

    def _plan(self) -> None:
        first_ms = self._node.settings["log.initial.task.delay.ms"]
        self._add(self._setting("broker.heartbeat.interval.ms"), self.metadata.heartbeat)
        self._add(self._setting("log.flush.offset.checkpoint.interval.ms"), self.logs.write_recovery_points, first_ms)
        self._add(self._setting("replica.high.watermark.checkpoint.interval.ms"), self.logs.write_high_watermarks)
        self._add(self._setting("log.retention.check.interval.ms"), self.logs.apply_retention, first_ms)
        self._add(self._setting("log.cleaner.backoff.ms"), self.logs.compact)
        self._add(self._setting("producer.id.expiration.check.interval.ms"), self.logs.expire_producers)
        self._add(lambda: _SECOND_MS, self.logs.flush)
        self._add(lambda: _SECOND_MS, self.logs.remove_files)
        self._add(lambda: _SECOND_MS, self.metadata.snapshot)
        self._add(lambda: _IDLE_CHECK_MS, self._close_idle)
        self._add(lambda: _SECOND_MS, self._freeze)
        if self._node.settings["metadata.max.idle.interval.ms"] > 0:
            self._add(self._setting("metadata.max.idle.interval.ms"), self.metadata.append_no_op)

    def _setting(self, name: str) -> Period:
        return lambda: int(self._node.settings[name])

    def _add(self, period: Period, chore: Callable[[], None], first_ms: int | None = None) -> None:
        at_ms = self._node.clock.monotonic_ms() + (period() if first_ms is None else first_ms)
        heapq.heappush(self._due, (at_ms, next(self._serial), period, chore))

    def start(self) -> None:
        self.logs.remove_leftovers()
        self._watch()

    def run_due(self) -> None:
        """Do the chores that are due."""
        now_ms = self._node.clock.monotonic_ms()
        while self._due[0][0] <= now_ms:
            _, serial, period, chore = heapq.heappop(self._due)
            heapq.heappush(self._due, (now_ms + max(period(), 1), serial, period, chore))
            try:
                chore()
            except StorageError as error:
                log.warning("%s: %s", chore.__name__, error)  # whose directory is offline has said so already
            except Exception:
                log.exception("%s failed", chore.__name__)

    def follow_settings(self) -> None:
        """Settings have changed: what is due more often now need not wait for the end of its old period."""
        now_ms = self._node.clock.monotonic_ms()
        self._due = [
            (min(at_ms, now_ms + max(period(), 1)), serial, period, chore) for at_ms, serial, period, chore in self._due
        ]
        heapq.heapify(self._due)

    def _watch(self) -> None:
        wait_ms = min(max(self._due[0][0] - self._node.clock.monotonic_ms(), 1), _SLEEP_MAX_MS)
        self._timer = self._node.loop.call_later(wait_ms / 1000, self._tick)

    def _tick(self) -> None:
        self.run_due()
        self._watch()

    def _close_idle(self) -> None:
        now_ms = self._node.clock.monotonic_ms()
        self._node.budget.expire(now_ms)
        for listener in self._node.listeners.values():
            listener.close_idle(now_ms)

    def _freeze(self) -> None:
        """Spare the garbage collector what is there to stay: looking through 10,000 partitions takes it 70 ms.

        Only in a process that is the node's own, which froze what it had loaded: others have garbage to collect.
        """
        count = len(self._node.replicas.by_key)
        if count >= self._frozen_count + _FREEZE_EVERY and gc.get_freeze_count():
            self._frozen_count = count
            gc.freeze()

    def stop(self) -> None:
        self._warming.stop()
        if self._timer is not None:
            self._timer.cancel()
