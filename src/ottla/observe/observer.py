"""An observer: looks at a cluster again and again, and writes down what it sees.

Theory of operation. The schedule says what is due; each look runs as a task of its own, so that a slow one holds up
none of the others. What looks bring is thinned out (`changes`), numbered (`outbox`) and queued; a writer takes it from
the queue to the sink. While the sink does not take it, it waits there, at most ten thousand samples long. So samples
that were taken while the cluster was down, which say just that, are written when it is back.

Which brokers are left alone for how long after a failure is the client's matter (`reconnect_backoff_ms`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client import Client, ClientError
from ottla.client.errors import ResponseError
from ottla.client.timing import Backoff
from ottla.health.coverage import NEEDS
from ottla.health.samples import UNREACHABLE, Sample
from ottla.observe.changes import Changes, Worth
from ottla.observe.clock import Clock, SystemClock
from ottla.observe.coverage import coverage
from ottla.observe.kinds import AFTER, INTERVALS_S
from ottla.observe.looks import LOOKS, Look
from ottla.observe.memory import Bounds, Memory, Moment
from ottla.observe.outbox import ROOM, Outbox, Stamp
from ottla.observe.schedule import Schedule
from ottla.observe.sighting import NODE_UNREACHABLE, Sighting, cannot_see, error_of, no_sight
from ottla.observe.sinks import Nowhere, Sink, UnwrittenError

__all__ = ["Observer", "Options"]

LOOK_MAX_S: Final = 60.0
"""A look that takes longer is given up."""
WRITTEN_AT_ONCE: Final = 500
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
LAST_PAUSE_MS: Final = 500
FLUSH_S: Final = 5.0
"""How long the last samples may take when the observer is stopped."""
ALWAYS_ASK: Final = frozenset({"cluster", "quorum", "group"})
"""Kinds whose looks ask the cluster whatever there is: by them it is known whether it answers."""
TELL_THEMSELVES: Final = frozenset({"share_state", "share_metrics", "share_window"})
"""Kinds whose looks say what they cannot see."""


class Options(NamedTuple):
    intervals_s: Mapping[str, float] = INTERVALS_S
    """Of the kinds to look at; others are left out."""
    bounds: Bounds = Bounds()
    metrics: tuple[str, ...] = ()
    """Where ottla brokers show their metrics."""
    room: int = ROOM
    """How many samples may wait to be written."""
    longest_pause_ms: int = LONGEST_PAUSE_MS
    """Between two attempts to write."""


class Observer:
    """`told` hears of each sample as it is taken, before it is written."""

    def __init__(
        self,
        client: Client,
        observer: str,
        options: Options,
        *,
        sink: Sink | None = None,
        told: Callable[[Sample], object] = lambda _: None,
        looks: Mapping[str, Look] = LOOKS,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._options = options
        self._sink = sink or Nowhere()
        self._told = told
        self._looks = looks
        self._clock = clock or SystemClock()
        self._schedule = Schedule(self._clock.ticks_ms(), options.intervals_s, AFTER)
        self._memory = Memory()
        self._changes = Changes()
        self._stamp = Stamp(observer)
        self._outbox = Outbox(options.room)
        self._woken = asyncio.Event()
        self._has_samples = asyncio.Event()
        self._may_write = asyncio.Event()
        self._was_tried = asyncio.Event()
        self._is_down = False
        self._is_stopped = False
        self.problem: str | None = None
        """Why samples cannot be written at the moment."""

    @property
    def waiting(self) -> int:
        """How many samples are not written yet."""
        return len(self._outbox)

    @property
    def looked_at_all(self) -> bool:
        """Whether every kind was looked at once."""
        return self._schedule.looked_at_all()

    def stop(self) -> None:
        """End `run` soon; what was seen is written before."""
        self._is_stopped = True
        self._woken.set()

    async def run(self, for_ms: int | None = None, *, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Observe until stopped, for so long, or until it is enough."""
        end_ms = None if for_ms is None else self._clock.ticks_ms() + for_ms
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._write_all())
            looks: set[asyncio.Task[None]] = set()
            while not self._is_over(end_ms) and not is_enough():
                self._woken.clear()
                for kind in self._schedule.due(self._clock.ticks_ms()):
                    task = tasks.create_task(self._look(kind))
                    looks.add(task)
                    task.add_done_callback(looks.discard)
                next_ms = self._schedule.next_ms()
                await self._clock.wait(next_ms if end_ms is None else min(next_ms, end_ms), self._woken)
            for task in list(looks):
                task.cancel()
            self._is_stopped = True
            await self._flushed(writer)

    def _is_over(self, end_ms: int | None) -> bool:
        return self._is_stopped or (end_ms is not None and self._clock.ticks_ms() >= end_ms)

    # --- looking ------------------------------------------------------------------------------------------------------

    async def _look(self, kind: str) -> None:
        at_ms, began_ms = self._clock.now_ms(), self._clock.ticks_ms()
        moment = Moment(self._client, self._memory, at_ms, self._options.bounds, self._options.metrics)
        try:
            async with asyncio.timeout(LOOK_MAX_S):
                seen = [*await self._looks[kind](moment), *self._visible(kind)]
        except ClientError as error:
            seen = self._failed(kind, error)
        except TimeoutError:
            seen = [no_sight(kind, "", "TIMEOUT")]
        if kind in ALWAYS_ASK:
            self._note_outage(any(each.error == UNREACHABLE for each in seen))
        await self._take(at_ms, self._clock.ticks_ms() - began_ms, seen)
        self._schedule.done(kind, self._clock.ticks_ms())
        self._woken.set()

    def _note_outage(self, is_down: bool) -> None:
        """When the cluster is back, what waits is written at once."""
        if self._is_down and not is_down:
            self._may_write.set()
        self._is_down = is_down

    def _visible(self, kind: str) -> Iterable[Sighting]:
        return () if kind in TELL_THEMSELVES else coverage(kind, self._memory.apis, self._memory.features)

    def _failed(self, kind: str, error: ClientError) -> list[Sighting]:
        """A look that failed leaves a hole; if it may not be had at all, that is said, too."""
        self._changes.forget(kind)
        name = error_of(error, is_connected=self._client.is_connected)
        seen = [no_sight(kind, "", name)]
        is_for_now = name in {UNREACHABLE, NODE_UNREACHABLE} or (isinstance(error, ResponseError) and error.retriable)
        if not is_for_now:
            seen.append(cannot_see(kind, f"{NEEDS.get(kind, kind)} (answer: {name})"))
        return seen

    async def _take(self, at_ms: int, took_ms: float, seen: Iterable[Sighting]) -> None:
        """One look may bring more than there is room for: where the writer can write, it goes first."""
        for worth in self._changes.worth(at_ms, seen):
            self._put(worth, at_ms, took_ms)
            if self.problem is None and len(self._outbox) > self._options.room // 2:
                self._was_tried.clear()
                await self._was_tried.wait()

    def _put(self, worth: Worth, at_ms: int, took_ms: float) -> None:
        cluster = self._client.metadata.cluster_id or ""
        sample = self._stamp.sample(worth, at_ms=at_ms, cluster=cluster, took_ms=took_ms)
        self._told(sample)
        self._outbox.put(sample)
        self._has_samples.set()

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        backoff = Backoff(FIRST_PAUSE_MS, self._options.longest_pause_ms)
        while True:
            await self._has_samples.wait()
            self._has_samples.clear()
            while len(self._outbox):
                if await self._write_some():
                    backoff = Backoff(FIRST_PAUSE_MS, self._options.longest_pause_ms)
                else:
                    await self._rest(backoff.next_ms())
            if self._is_stopped:
                return

    async def _write_some(self) -> bool:
        samples = self._outbox.take(WRITTEN_AT_ONCE)
        left: list[Sample] = samples
        try:
            await self._sink.write(samples)
            left, self.problem = [], None
        except UnwrittenError as error:
            left, self.problem = error.samples, str(error)
        except ClientError as error:
            self.problem = str(error)
        finally:
            self._outbox.put_back(left)
            self._was_tried.set()
        return not left

    async def _rest(self, pause_ms: float) -> None:
        self._may_write.clear()
        bound_ms = LAST_PAUSE_MS if self._is_stopped else pause_ms
        await self._clock.wait(self._clock.ticks_ms() + round(min(pause_ms, bound_ms)), self._may_write)

    async def _flushed(self, writer: asyncio.Task[None]) -> None:
        """The last samples: brokers that were left alone are tried once more."""
        self._client.try_again()
        self._has_samples.set()
        self._may_write.set()
        await asyncio.wait([writer], timeout=FLUSH_S)
        writer.cancel()
        await self._sink.close()
