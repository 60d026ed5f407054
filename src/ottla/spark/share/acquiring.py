"""The member of the share group on the driver: an event loop in a thread of its own, with a share consumer in it.

Locks are renewed from there while Spark works on a batch. When the process ends, its connections close, and the brokers
release at once what it holds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientError, UnsupportedVersionError
from ottla.client.metadata import TopicPartition
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.offsets import describe_offsets
from ottla.client.share.records import AcknowledgeType, Acquired, AcquiredRange
from ottla.spark.notes import warn_seldom
from ottla.spark.share.offsets import Acquisition, Place
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Held, Verdict
from ottla.spark.share.ranges import cut
from ottla.wire import uuid_text

__all__ = ["GroupMember"]

T = TypeVar("T")
FETCH_RECORDS_MAX: Final = 2_000
SECOND_MS: Final = 1000
RENEWALS: Final = 3
"""How often a lock is renewed in the time that it holds."""
CALL_TIMEOUT_S: Final = 120.0
ASSIGNMENT_TIMEOUT_S: Final = 30.0
SHORTEST_LOCK_MS: Final = 1_000


class GroupMember:
    """For one thread; its own thread is a daemon, since nobody tells a stream's reader when the query ends."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._held: dict[Place, list[Acquired]] = {}
        """Exactly what is not settled yet."""
        self._spare: list[Acquired] = []
        """Brought, and too much for the last batch."""
        self._lock_ms = SHORTEST_LOCK_MS
        self._consumer: ShareConsumer | None = None
        self._client: Client | None = None
        threading.Thread(target=self._loop.run_forever, name="ottla-share", daemon=True).start()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)

    # --- acquiring ----------------------------------------------------------------------------------------------------

    def acquire(self, max_records: int) -> list[Held]:
        """What comes in the time for it, up to so many records; nothing if nothing comes in the time of one fetch."""
        return [_held(each) for each in self._call(self._acquire(max_records))]

    async def _acquire(self, max_records: int) -> list[Acquired]:
        consumer = await self._joined()
        ends_at_s = time.monotonic() + self._options.acquire_time_ms / SECOND_MS
        taken: list[Acquired] = []
        left, size_bytes = max_records, 0
        while left > 0 and size_bytes < self._options.max_bytes_per_trigger:
            brought = self._spare or await consumer.poll(self._options.fetch_wait_ms)
            self._spare = []
            if not brought:
                break
            for each in brought:
                size_bytes += len(each.data)
                now, later = _split(each, left)
                left -= len(now) if now is not None else 0
                taken += [] if now is None else [now]
                self._spare += [] if later is None else [later]
            if time.monotonic() > ends_at_s:
                break
        for each in taken:
            self._lock_ms = each.lock_timeout_ms
            self._held.setdefault(_place(each), []).append(replace(each, data=b""))
        return taken

    async def _joined(self) -> ShareConsumer:
        if self._consumer is None:
            options = self._options
            self._client = await Client(options.bootstrap_servers, **options.client_settings()).__aenter__()
            self._consumer = await ShareConsumer(
                self._client,
                options.group,
                options.subscribe,
                acknowledgement="explicit",
                acquire_mode="record_limit",
                max_records=min(options.max_records_per_trigger, FETCH_RECORDS_MAX),
                max_wait_ms=options.fetch_wait_ms,
                max_bytes=options.max_bytes_per_trigger,
                on_acknowledged=lambda *_: None,
            ).__aenter__()
            self._renewing = self._loop.create_task(self._renew())
            await self._wait_for_assignment(self._consumer)
        return self._consumer

    async def _wait_for_assignment(self, consumer: ShareConsumer) -> None:
        """A group that is new needs a moment; without it, a query over what is there would end before it has begun."""
        deadline_s = time.monotonic() + ASSIGNMENT_TIMEOUT_S
        while not consumer.assignment and time.monotonic() < deadline_s:
            self._spare += await consumer.poll(100)

    # --- settling -----------------------------------------------------------------------------------------------------

    def settle(self, verdicts: Mapping[Place, Sequence[Verdict]]) -> set[Place]:
        return self._call(self._settle(verdicts))

    async def _settle(self, verdicts: Mapping[Place, Sequence[Verdict]]) -> set[Place]:
        consumer = self._consumer
        if consumer is None:
            return set()
        names: dict[TopicPartition, Place] = {}
        for place, some in verdicts.items():
            for verdict in some:
                for piece in self._take(place, verdict):
                    names[piece.at] = place
                    consumer.acknowledge(AcknowledgeType(verdict.kind), piece)
        try:
            outcomes = await consumer.commit()
        except ClientError as error:
            warn_seldom(f"acknowledgements of group {self._options.group} were not sent: {error}")
            return set()
        return {names[at] for at, error in outcomes.items() if error is None and at in names}

    def _take(self, place: Place, verdict: Verdict) -> list[Acquired]:
        """What is held of a range, and no longer."""
        taken: list[Acquired] = []
        kept: list[Acquired] = []
        for each in self._held.get(place, ()):
            inside: list[AcquiredRange] = []
            outside: list[AcquiredRange] = []
            for first, last, count in each.ranges:
                for begin, end, is_in in cut(first, last, [verdict[:2]]):
                    (inside if is_in else outside).append(AcquiredRange(begin, end, count))
            taken += [replace(each, ranges=tuple(inside))] if inside else []
            kept += [replace(each, ranges=tuple(outside))] if outside else []
        self._held[place] = kept
        return taken

    # --- renewing -----------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Keep the locks of what a batch holds, for as long as it takes."""
        while True:
            await asyncio.sleep(self._lock_ms / RENEWALS / SECOND_MS)
            held = [each for some in self._held.values() for each in some] + self._spare
            if not held or self._consumer is None:
                continue
            try:
                await self._consumer.renew(*held)
            except UnsupportedVersionError as error:
                warn_seldom(f"locks of group {self._options.group} cannot be renewed: {error}", float("inf"))
                return
            except ClientError as error:
                warn_seldom(
                    f"locks of group {self._options.group} were not renewed, their records may come again: {error}"
                )

    # --- looking ------------------------------------------------------------------------------------------------------

    def starts(self) -> Mapping[Place, int]:
        return self._call(self._starts())

    async def _starts(self) -> Mapping[Place, int]:
        if self._client is None:
            return {}
        try:
            found = await describe_offsets(self._client, self._options.group)
        except ClientError as error:
            warn_seldom(f"the start offsets of group {self._options.group} are not known: {error}")
            return {}
        ids = {name: uuid_text(topic.topic_id) for name, topic in self._client.metadata.topics.items()}
        return {
            Place(ids[at.topic], at.partition): each.start_offset
            for at, each in found.items()
            if at.topic in ids and each.start_offset is not None
        }


def _place(acquired: Acquired) -> Place:
    return Place(uuid_text(acquired.topic_id), acquired.at.partition)


def _held(acquired: Acquired) -> Held:
    return Held(_place(acquired), acquired.at.topic, [Acquisition(*each) for each in acquired.ranges])


def _split(acquired: Acquired, count: int) -> tuple[Acquired | None, Acquired | None]:
    """The first so many records, and the rest."""
    if count <= 0:
        return None, acquired
    left = count
    for first, last, _ in acquired.ranges:
        if left <= last - first:
            return acquired.before(first + left), acquired.since(first + left)
        left -= last - first + 1
        if not left:
            rest = acquired.since(last + 1)
            return acquired.before(last + 1), rest if rest.ranges else None
    return acquired, None
