"""The unit of work: everything that is decided in one turn of the event loop is written together at its end.

A turn is one callback of the loop: the requests of a connection, a deadline, or the outcome of an effect. Shards with
records to write register here. `end` hands their batches to the logs, writes what is staged and releases what is
committed, and repeats this until nothing is left, since a released response can lead to new records. Connections call
`end_connection`; for every other turn a call of `end` is queued on the loop.

Delayed responses are kept, too, and leave at the end of each round. A connection that gets one handles its next
requests within `end`; what these decide is written in the next round.

With many busy connections it is cheaper to end all their turns at once; with one connection that would only add delay.
So every now and then the end of a turn is put off as a trial, and as long as other connections join, all are put off.

One timer of the loop serves all deadlines of all shards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from ottla.broker.loop.clock import Clock
from ottla.broker.network.request import DelayedResponse
from ottla.broker.replicas.replicas import Replicas
from ottla.core.coordinator.deadlines import Deadlines

__all__ = ["Participant", "UnitOfWork"]

log = logging.getLogger(__name__)

ROUNDS_MAX: Final = 16
"""After so many rounds the loop runs other callbacks first."""
PROBE_EVERY: Final = 32
"""After so many turns that ended by themselves, the end of one is put off as a trial."""
EXPIRED_MAX: Final = 100
"""After so many deadlines of a shard the loop runs other callbacks first."""


Advance = Callable[[int], None]
"""Called with a partition of its topic whose log has changed."""


class Participant(Protocol):
    """A shard of a coordinator: it has records to write, and deadlines."""

    @property
    def is_loaded(self) -> bool: ...
    def __hash__(self) -> int: ...
    def flush(self) -> None:
        """Hand the batch to the log."""

    def expire(self, count_max: int) -> None:
        """Do what is due."""

    def next_at_ms(self) -> int | None:
        """When something is due."""


class UnitOfWork:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, replicas: Replicas) -> None:
        self.clock = clock
        self._followers: dict[str, Advance] = {}
        """By topic."""
        self._loop = loop
        self._replicas = replicas
        self._unflushed: dict[Participant, None] = {}
        self._moved: dict[tuple[str, int], Advance] = {}
        self.is_attended = False
        """Whether a connection's turn is on, which ends without our doing."""
        self._is_queued = False
        self._is_ending = False
        self._is_shared = False
        self._sharer_count = 0
        self._alone_count = 0
        self._answers: list[tuple[DelayedResponse, Any]] = []
        self._deadlines = Deadlines()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0

    def follow(self, topic: str, advance: Advance) -> None:
        """Have `advance` called at the end of turns in which partitions of a topic have moved."""
        self._followers[topic] = advance

    # --- what happens in a turn ---------------------------------------------------------------------------------------

    def unflushed(self, shard: Participant) -> None:
        self._unflushed[shard] = None
        self._queue()

    def moved(self, topic: str, partition: int) -> None:
        """A partition has moved: its high watermark, its leader, or it is gone."""
        advance = self._followers.get(topic)
        if advance is not None:
            self._moved[topic, partition] = advance
            self._queue()

    def _queue(self) -> None:
        if not (self.is_attended or self._is_queued or self._is_ending):
            self._is_queued = True
            self._loop.call_soon(self._end_queued)

    def _end_queued(self) -> None:
        self._is_queued = False
        self._is_shared, self._sharer_count = self._sharer_count > 1, 0
        self.end()

    # --- the end of a turn --------------------------------------------------------------------------------------------

    def end_connection(self) -> None:
        """End the turn of a connection: now, or with those of others that are at work."""
        if not self._unflushed:
            if self._replicas.has_staged or self._moved or self._answers:
                self.end()
        elif self._is_shared:
            self._sharer_count += 1
            self._replicas.write_staged()
            self._queue()
        else:
            self._alone_count = (self._alone_count + 1) % PROBE_EVERY
            self._is_shared = not self._alone_count
            self.end()

    def end(self) -> None:
        """Flush the batches of shards, write what is staged, release what is committed."""
        if not (self._unflushed or self._moved or self._answers):
            self._replicas.write_staged()
            return
        if self._is_ending:
            return  # whoever is at it goes on until nothing is left
        self._is_ending = True
        try:
            for _ in range(ROUNDS_MAX):
                self._end_round()
                if not self._has_work():
                    return
        finally:
            self._is_ending = False
        self._queue()

    def _has_work(self) -> bool:
        return bool(self._unflushed or self._moved or self._answers or self._replicas.has_staged)

    def _end_round(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        for shard in unflushed:
            _safely(shard.flush)
        self._replicas.write_staged()
        moved, self._moved = self._moved, {}
        for (_, partition), advance in moved.items():
            _safely(advance, partition)
        answers, self._answers = self._answers, []
        for later, message in answers:
            _safely(later.complete, message)

    def deliver(self, later: DelayedResponse, message: object) -> None:
        """Give a response at the end of the turn."""
        self._answers.append((later, message))
        self._queue()

    def after_write(self, call: Callable[[], None]) -> None:
        """Call a function at the end of this turn, once everything is staged and written."""
        later = DelayedResponse()
        later.deliver_to(lambda _: call())
        self.deliver(later, None)

    # --- timers -------------------------------------------------------------------------------------------------------

    def due_at(self, shard: Participant, at_ms: int) -> None:
        """A shard has something to do then, or earlier."""
        known_at_ms = self._deadlines.get(shard)
        if known_at_ms is None or at_ms < known_at_ms:
            self._deadlines.set(shard, at_ms)
            self._watch(at_ms)

    def forget(self, shard: Participant) -> None:
        """A shard is unloaded."""
        self._deadlines.cancel(shard)
        self._unflushed.pop(shard, None)

    def expire(self) -> None:
        """Call `expire` of all shards with deadlines that have passed."""
        now_ms = self.clock.monotonic_ms()
        while (due := self._deadlines.take_due(now_ms)) is not None:
            shard = cast(Participant, due)
            shard.expire(EXPIRED_MAX)
            next_at_ms = shard.next_at_ms()
            if next_at_ms is not None and shard.is_loaded:
                self._deadlines.set(shard, max(next_at_ms, now_ms + 1))

    def _watch(self, at_ms: int) -> None:
        """Set the timer of the loop, unless it fires earlier already."""
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_at_ms = at_ms
        self._timer = self._loop.call_later(max(at_ms - self.clock.monotonic_ms(), 0) / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self.expire()
        next_at_ms = self._deadlines.next_at_ms()
        if next_at_ms is not None:
            self._watch(max(next_at_ms, self.clock.monotonic_ms() + 1))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _safely(call: Callable[..., None], *arguments: object) -> None:
    """Call a function; log its exception, so that other turns that end here are not affected."""
    try:
        call(*arguments)
    except Exception:
        log.exception("the end of a turn failed")
