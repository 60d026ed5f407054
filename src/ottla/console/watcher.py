"""Watches a cluster with the rights of one principal: an observer that feeds the state, and questions of single pages.

Theory of operation. While somebody looks, an observer takes samples on its intervals; pages about the whole cluster
show the state and ask nothing themselves. What only one page shows is asked for when the page is opened, at most once
in two seconds however many look at it. If the cluster cannot be reached, the last state stays, with its age, and the
watcher tries again after pauses that grow to half a minute.

Where an observer writes to its topic, the watcher begins with the samples of the last hour, so that history is older
than the console.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

from ottla.client import Client, ClientError
from ottla.client.backoff import Backoff
from ottla.client.settings import Changes
from ottla.console.end_offsets import EndOffsets
from ottla.console.events import EventHub
from ottla.console.group_records import GroupTimeline
from ottla.console.traffic import Taps
from ottla.health.evaluator import SampleEvaluator
from ottla.health.samples import OBSERVATIONS, UNREACHABLE, Sample
from ottla.health.series import LruDict
from ottla.observe import QUIET, Observer, Options, read_topic
from ottla.observe.cluster_state import ClusterState

__all__ = ["ClusterWatcher", "NotConnectedError", "Outage", "now_ms"]

log = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_MS: Final = 2_000
"""How long an answer serves everybody who opens the same page."""
ANSWERS_MAX: Final = 500
TIMELINES_MAX: Final = 100
RETRY_FIRST_MS: Final = 1_000
RETRY_LONGEST_MS: Final = 30_000
ADVANCE_S: Final = 1.0
RECALLED_MS: Final = 3_600_000
RECALLED_AT_ONCE: Final = 200
"""Samples that are taken before others get their turn."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Outage(NamedTuple):
    """The cluster is not watched for now, as a rule because it cannot be reached."""

    since_ms: int
    why: str
    retry_ms: int
    """When it is tried again."""


class NotConnectedError(Exception):
    """There is no connection to the cluster, so that a page cannot ask anything."""


class _Answer(NamedTuple):
    asked_ms: int
    future: asyncio.Future[Any]


class ClusterWatcher:
    """`run` watches until it is cancelled."""

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Changes,
        evaluator: SampleEvaluator,
        *,
        principal: str = "",
        options: Options | None = None,
        pipelines: Sequence[Path] = (),
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.principal = principal
        """Who is logged in to the cluster, if the console knows."""
        self.state = ClusterState(evaluator)
        self.events = EventHub()
        self.traffic = Taps(self.events.publish, now_ms)
        self.ends = EndOffsets()
        """The ends of topics that pages have asked for."""
        self.timelines: LruDict[str, GroupTimeline] = LruDict(TIMELINES_MAX)
        """By group; from the records of its coordinator."""
        self.pipelines = tuple(pipelines)
        """Directories to which pipelines write their tables and reports."""
        self.outage: Outage | None = None
        self.recalled: str | None = None
        """What was found in the observer's topic; None before it was looked for."""
        self.settings: Changes = {**QUIET, "client_id": "ottla-console", **settings}
        self._options = options or Options()
        self._client: Client | None = None
        self._observer: Observer | None = None
        self._answers: LruDict[tuple[object, ...], _Answer] = LruDict(ANSWERS_MAX)

    @property
    def client(self) -> Client:
        if self._client is None:
            raise NotConnectedError
        return self._client

    @property
    def cluster_id(self) -> str:
        return self.state.evaluator.cluster

    @property
    def history_since_ms(self) -> int | None:
        """Since when anything is known."""
        return self.state.evaluator.first_ms or None

    @property
    def intervals_s(self) -> dict[str, float]:
        return dict(self._options.intervals_s)

    def probed_ms(self, kind: str) -> int | None:
        """When a kind of sample was last taken without an error."""
        return None if self._observer is None else self._observer.probed_ms.get(kind)

    # --- watching -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            self.traffic.close()

    async def _run(self) -> None:
        backoff = Backoff(RETRY_FIRST_MS, RETRY_LONGEST_MS)
        while True:
            try:
                async with Client(self.bootstrap_servers, **self.settings) as client:
                    self._client, self.outage = client, None
                    backoff = Backoff(RETRY_FIRST_MS, RETRY_LONGEST_MS)
                    await self._observe(client)
            except ClientError as error:
                await self._wait(str(error), backoff.next_ms())
            except Exception:
                log.exception("watching %s failed", self.bootstrap_servers)
                await self._wait("an unforeseen error, which the console's log tells", RETRY_LONGEST_MS)
            finally:
                self._client = self._observer = None

    async def _recall(self, client: Client) -> None:
        """Take the samples that an observer has written before.

        Not those of the future, from an observer whose clock is ahead: until then all that is seen would count as late.
        """
        until_ms = now_ms()
        try:
            samples = await read_topic(client, OBSERVATIONS, until_ms - RECALLED_MS)
        except ClientError as error:
            self.recalled = f"the topic {OBSERVATIONS} cannot be read: {error}"
            return
        for at, sample in enumerate(samples):
            if sample.cluster == client.metadata.cluster_id and sample.ts <= until_ms:
                self.state.take(sample)
            if at % RECALLED_AT_ONCE == 0:
                await asyncio.sleep(0)
        self.recalled = f"{len(samples):,} samples of the topic {OBSERVATIONS}"

    async def _observe(self, client: Client) -> None:
        if self.recalled is None:
            await self._recall(client)
        self._observer = Observer(client, "console", self._options, on_sample=self._take)
        async with asyncio.TaskGroup() as tasks:
            ticking = tasks.create_task(self._advance())
            await self._observer.run()
            ticking.cancel()

    async def _advance(self) -> None:
        while True:
            await asyncio.sleep(ADVANCE_S)
            self._forget_answers()
            self.events.publish(self.state.advance(now_ms()))

    async def _wait(self, why: str, pause_ms: float) -> None:
        since_ms = now_ms() if self.outage is None else self.outage.since_ms
        self.outage = Outage(since_ms, why, now_ms() + round(pause_ms))
        self.events.publish({"cluster"})
        await asyncio.sleep(pause_ms / 1000)

    def _take(self, sample: Sample) -> None:
        if sample.kind == "cluster":
            self._note_outage(sample)
        self.events.publish(self.state.take(sample))

    def _note_outage(self, sample: Sample) -> None:
        if sample.error != UNREACHABLE:
            self.outage = None
            return
        since_ms = sample.ts if self.outage is None else self.outage.since_ms
        retry_ms = sample.ts + round(1000 * self._options.intervals_s.get("cluster", 0))
        self.outage = Outage(since_ms, "no broker is reachable", retry_ms)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, key: tuple[object, ...], work: Callable[[Client], Awaitable[T]]) -> tuple[T, int]:
        """The result of some work, and when it was begun. Work under the same key is done once for all who ask."""
        client = self.client
        self._forget_answers()
        known = self._answers.get(key)
        if known is None:
            future = asyncio.ensure_future(work(client))
            future.add_done_callback(_seen)
            known = self._answers.touch(key, lambda: _Answer(now_ms(), future))
        # Whoever goes away must not end the work that others wait for.
        return cast("T", await asyncio.shield(known.future)), known.asked_ms

    def _forget_answers(self) -> None:
        """Forget answers that are no longer fresh: one may hold hundreds of megabytes of records."""
        at_ms = now_ms()
        for key, known in self._answers.items():
            if known.future.done() and not 0 <= at_ms - known.asked_ms < FRESH_MS:
                self._answers.pop(key)


def _seen(future: asyncio.Future[Any]) -> None:
    """An error that nobody waits for any more is no fault of the console."""
    if not future.cancelled():
        future.exception()
