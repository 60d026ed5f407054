"""The observer: runs probes on intervals, and writes their results as samples.

Theory of operation. The schedule says which probes are due. Each runs in a task of its own, so a slow one does not
delay the others. `ChangeFilter` drops results that have not changed, `Stamp` numbers the rest, and `Outbox` queues them
for the writer, which hands them to the sink. While the sink fails, at most ten thousand samples wait in the queue. So
the samples that record an outage of the cluster are written when the cluster is back.

The client decides how long it backs off from a broker after a failure (`reconnect_backoff_ms`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client import Client, ClientError
from ottla.client.backoff import Backoff
from ottla.client.errors import ResponseError
from ottla.health.coverage import NEEDS
from ottla.health.samples import UNREACHABLE, Sample
from ottla.observe.changes import ChangeFilter, ToWrite
from ottla.observe.clock import Clock, SystemClock
from ottla.observe.coverage import coverage
from ottla.observe.kinds import AFTER, INTERVALS_S
from ottla.observe.memory import Bounds, Memory, ProbeContext
from ottla.observe.outbox import ROOM, Outbox, Stamp
from ottla.observe.probe_result import NODE_UNREACHABLE, ProbeResult, error_of, not_visible, probe_error
from ottla.observe.probes import PROBES, Probe
from ottla.observe.schedule import Schedule
from ottla.observe.sinks import NullSink, Sink, UnwrittenError

__all__ = ["Observer", "Options"]

PROBE_TIMEOUT_S: Final = 60.0
"""A probe that takes longer is cancelled."""
WRITTEN_AT_ONCE: Final = 500
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
LAST_PAUSE_MS: Final = 500
FLUSH_S: Final = 5.0
"""How long writing the last samples may take when the observer is stopped."""
ALWAYS_ASK: Final = frozenset({"cluster", "quorum", "group"})
"""Kinds whose probes always send a request, so their results show whether the cluster answers."""
REPORT_OWN_COVERAGE: Final = frozenset({"share_state", "share_metrics", "share_window", "access"})
"""Kinds whose probes report themselves what is not visible."""


class Options(NamedTuple):
    intervals_s: Mapping[str, float] = INTERVALS_S
    """By kind; kinds that are not in it are not probed."""
    bounds: Bounds = Bounds()
    metrics: tuple[str, ...] = ()
    """URLs of the metrics pages of ottla brokers."""
    room: int = ROOM
    """How many samples may wait to be written."""
    longest_pause_ms: int = LONGEST_PAUSE_MS
    """The longest pause between two attempts to write."""


class Observer:
    """`on_sample` is called with each sample when it is taken, before it is written."""

    def __init__(
        self,
        client: Client,
        observer: str,
        options: Options,
        *,
        sink: Sink | None = None,
        on_sample: Callable[[Sample], object] = lambda _: None,
        probes: Mapping[str, Probe] = PROBES,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._options = options
        self._sink = sink or NullSink()
        self._on_sample = on_sample
        self._probes = probes
        self._clock = clock or SystemClock()
        self._schedule = Schedule(self._clock.ticks_ms(), options.intervals_s, AFTER)
        self._memory = Memory()
        self._changes = ChangeFilter()
        self._stamp = Stamp(observer)
        self._outbox = Outbox(options.room)
        self._woken = asyncio.Event()
        self._has_samples = asyncio.Event()
        self._may_write = asyncio.Event()
        self._was_tried = asyncio.Event()
        self._is_down = False
        self._is_stopped = False
        self.probed_ms: dict[str, int] = {}
        """Kind -> when its last successful probe began. What has not changed since then makes no sample."""
        self.problem: str | None = None
        """Why samples cannot be written at the moment."""

    @property
    def waiting(self) -> int:
        """How many samples are not written yet."""
        return len(self._outbox)

    @property
    def probed_all(self) -> bool:
        """Whether every kind was probed at least once."""
        return self._schedule.probed_all()

    def stop(self) -> None:
        """End `run` soon; it writes the last samples first."""
        self._is_stopped = True
        self._woken.set()

    async def run(self, for_ms: int | None = None, *, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Observe until `stop` is called, `for_ms` has passed or `is_enough` is true."""
        end_ms = None if for_ms is None else self._clock.ticks_ms() + for_ms
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._write_all())
            probes: set[asyncio.Task[None]] = set()
            while not self._is_over(end_ms) and not is_enough():
                self._woken.clear()
                for kind in self._schedule.due(self._clock.ticks_ms()):
                    task = tasks.create_task(self._probe(kind))
                    probes.add(task)
                    task.add_done_callback(probes.discard)
                next_ms = self._schedule.next_ms()
                await self._clock.wait(next_ms if end_ms is None else min(next_ms, end_ms), self._woken)
            for task in list(probes):
                task.cancel()
            self._is_stopped = True
            await self._flushed(writer)

    def _is_over(self, end_ms: int | None) -> bool:
        return self._is_stopped or (end_ms is not None and self._clock.ticks_ms() >= end_ms)

    # --- probing ------------------------------------------------------------------------------------------------------

    async def _probe(self, kind: str) -> None:
        at_ms, began_ms = self._clock.now_ms(), self._clock.ticks_ms()
        ctx = ProbeContext(self._client, self._memory, at_ms, self._options.bounds, self._options.metrics)
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                results = [*await self._probes[kind](ctx), *self._visible(kind)]
            self.probed_ms[kind] = at_ms
        except ClientError as error:
            results = self._failed(kind, error)
        except TimeoutError:
            results = [probe_error(kind, "", "TIMEOUT")]
        if kind in ALWAYS_ASK:
            self._note_outage(any(each.error == UNREACHABLE for each in results))
        await self._take(at_ms, self._clock.ticks_ms() - began_ms, results)
        self._schedule.done(kind, self._clock.ticks_ms())
        self._woken.set()

    def _note_outage(self, is_down: bool) -> None:
        """Write waiting samples at once when the cluster is back."""
        if self._is_down and not is_down:
            self._may_write.set()
        self._is_down = is_down

    def _visible(self, kind: str) -> Iterable[ProbeResult]:
        return () if kind in REPORT_OWN_COVERAGE else coverage(kind, self._memory.apis, self._memory.features)

    def _failed(self, kind: str, error: ClientError) -> list[ProbeResult]:
        """The results of a probe that failed: its error, and, if trying again cannot help, that the kind is not
        visible."""
        self._changes.forget(kind)
        name = error_of(error, is_connected=self._client.is_connected)
        results = [probe_error(kind, "", name)]
        is_for_now = name in {UNREACHABLE, NODE_UNREACHABLE} or (isinstance(error, ResponseError) and error.retriable)
        if not is_for_now:
            results.append(not_visible(kind, f"{NEEDS.get(kind, kind)} (error: {name})"))
        return results

    async def _take(self, at_ms: int, took_ms: float, results: Iterable[ProbeResult]) -> None:
        """Queue what has changed. One probe may give more results than the outbox holds, so this waits for the writer
        unless writing fails."""
        for to_write in self._changes.select(at_ms, results):
            self._put(to_write, at_ms, took_ms)
            if self.problem is None and len(self._outbox) > self._options.room // 2:
                self._was_tried.clear()
                await self._was_tried.wait()

    def _put(self, to_write: ToWrite, at_ms: int, took_ms: float) -> None:
        cluster = self._client.metadata.cluster_id or ""
        sample = self._stamp.sample(to_write, at_ms=at_ms, cluster=cluster, took_ms=took_ms)
        self._on_sample(sample)
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
        """Write the last samples. The client tries brokers again from which it had backed off."""
        self._client.try_again()
        self._has_samples.set()
        self._may_write.set()
        await asyncio.wait([writer], timeout=FLUSH_S)
        writer.cancel()
        await self._sink.close()
