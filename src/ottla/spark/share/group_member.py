"""The member of the share group on the driver: a share consumer on an event loop in a thread of its own.

That thread renews locks while Spark works on a batch. When the process ends, its connections close, and the brokers
release its records at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientError, UnsupportedVersionError
from ottla.client.metadata import TopicPartition
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.offsets import describe_offsets
from ottla.client.share.records import AcknowledgeType, Acquired, AcquiredRange
from ottla.spark.cluster_options import MIB
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn, warn_once, warn_seldom
from ottla.spark.share.offsets import Acquisition, TopicIdPartition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Acknowledgement, AcquiredPartition
from ottla.spark.share.ranges import Range, cut
from ottla.wire import uuid_text

__all__ = ["GroupMember"]

T = TypeVar("T")
FETCH_MAX_BYTES: Final = 16 * MIB
SECOND_MS: Final = 1000
RENEWALS: Final = 3
"""How often a lock is renewed during a lock duration."""
CALL_TIMEOUT_S: Final = 120.0
ASSIGNMENT_TIMEOUT_S: Final = 30.0
SHORTEST_LOCK_MS: Final = 1_000
OFFSET_MAX: Final = (1 << 63) - 1


class GroupMember:
    """For use by one thread. Its own thread is a daemon, because Spark does not tell a reader that the query ends."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._held: dict[TopicIdPartition, list[Acquired]] = {}
        """The records that are acquired and not acknowledged yet."""
        self._assigned_by_s = 0.0
        self._lock_ms = SHORTEST_LOCK_MS
        self._consumer: ShareConsumer | None = None
        self._client: Client | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="ottla-share", daemon=True)
        self._thread.start()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        called = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return called.result(CALL_TIMEOUT_S)
        except TimeoutError:
            called.cancel()
            servers = self._options.bootstrap_servers
            raise OttlaSparkError(
                f"share group {self._options.group}: no response from {servers} in {CALL_TIMEOUT_S:.0f} s"
            ) from None

    # --- acquiring ----------------------------------------------------------------------------------------------------

    def acquire(self, max_records: int, *, waits: bool = True) -> list[AcquiredPartition]:
        """Acquire at most so many records with one fetch; leaders are asked in turn until one has some."""
        wait_ms = self._options.fetch_wait_ms if waits else 0
        return [_held(each) for each in self._call(self._acquire(max_records, wait_ms))]

    async def _acquire(self, max_records: int, wait_ms: int) -> list[Acquired]:
        consumer = await self._joined()
        turns = 1
        while not (brought := await consumer.fetch(max_records, wait_ms)):
            if turns >= self._leader_count(consumer) and not (wait_ms and self._is_new(consumer)):
                break
            turns += 1
        for each in brought:
            self._lock_ms = each.lock_timeout_ms
            held = self._held.setdefault(_place(each), [])
            held[:] = [*_outside(held, each), replace(each, data=b"")]
        return brought

    def _is_new(self, consumer: ShareConsumer) -> bool:
        """Whether the group has no assignment yet: a query with availableNow would end before it has begun."""
        return not consumer.assignment and time.monotonic() < self._assigned_by_s

    def _leader_count(self, consumer: ShareConsumer) -> int:
        """The number of requests without a record after which there is none: each goes to one leader."""
        assert self._client is not None
        topics = self._client.metadata.topics
        known = (at for at in consumer.assignment if at.topic in topics)
        return len({topics[at.topic].partitions[at.partition].leader for at in known})

    async def _joined(self) -> ShareConsumer:
        if self._consumer is None:
            options = self._options
            self._client = await Client(options.bootstrap_servers, **options.client_settings()).__aenter__()
            await self._check_topics(self._client)
            self._consumer = await ShareConsumer(
                self._client,
                options.group,
                options.subscribe,
                acknowledgement="explicit",
                acquire_mode="record_limit",
                max_bytes=min(options.max_bytes_per_trigger, FETCH_MAX_BYTES),
                on_acknowledged=lambda *_: None,
            ).__aenter__()
            self._renewing = self._loop.create_task(self._renew())
            self._assigned_by_s = time.monotonic() + ASSIGNMENT_TIMEOUT_S
        return self._consumer

    async def _check_topics(self, client: Client) -> None:
        there = await client.all_topics()
        missing = ", ".join(name for name in self._options.subscribe if name not in there)
        if missing and self._options.fail_on_data_loss:
            raise OttlaSparkError(
                f"option subscribe: topic {missing} does not exist; with failOnDataLoss=false the query waits for it"
            )
        if missing:
            warn(f"topic {missing} does not exist: it will be read once it exists")

    def close(self) -> None:
        """Leave the group, which releases its records, as the end of the process does."""
        if self._loop.is_closed():
            return
        self._call(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _leave(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        if self._client is not None:
            await self._client.close()

    # --- settling -----------------------------------------------------------------------------------------------------

    def settle(self, acknowledgements: Mapping[TopicIdPartition, Sequence[Acknowledgement]]) -> set[TopicIdPartition]:
        return self._call(self._settle(acknowledgements))

    async def _settle(
        self, acknowledgements: Mapping[TopicIdPartition, Sequence[Acknowledgement]]
    ) -> set[TopicIdPartition]:
        consumer = self._consumer
        if consumer is None:
            return set()
        names: dict[TopicPartition, TopicIdPartition] = {}
        for tp, some in acknowledgements.items():
            for acknowledgement in some:
                for piece in self._take(tp, acknowledgement):
                    names[piece.at] = tp
                    consumer.acknowledge(AcknowledgeType(acknowledgement.kind), piece)
        try:
            outcomes = await consumer.commit()
        except ClientError as error:
            warn_seldom(f"acknowledgements of group {self._options.group} were not sent: {error}")
            return set()
        return {names[at] for at, error in outcomes.items() if error is None and at in names}

    def _take(self, tp: TopicIdPartition, acknowledgement: Acknowledgement) -> list[Acquired]:
        """Remove and return the held records of a range."""
        held = self._held.get(tp, [])
        self._held[tp] = [piece for each in held for piece in _cut(each, [acknowledgement[:2]], is_in=False)]
        return [piece for each in held for piece in _cut(each, [acknowledgement[:2]], is_in=True)]

    # --- renewing -----------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew the locks of the held records, for as long as a batch takes."""
        while True:
            await asyncio.sleep(self._lock_ms / RENEWALS / SECOND_MS)
            try:
                await self._renew_all()
            except UnsupportedVersionError as error:
                warn_once(f"locks of group {self._options.group} cannot be renewed: {error}")
                return

    def renew(self) -> None:
        """Renew all locks now."""
        self._call(self._renew_all())

    async def _renew_all(self) -> None:
        held = [each for some in self._held.values() for each in some]
        for node_id in {each.node_id for each in held}:
            await self._renew_at([each for each in held if each.node_id == node_id])

    async def _renew_at(self, held: list[Acquired]) -> None:
        """Renew the locks at one leader; an error there must not affect the other leaders."""
        assert self._consumer is not None
        try:
            await self._consumer.renew(*held)
        except UnsupportedVersionError:
            raise
        except ClientError as error:
            text = f"locks of group {self._options.group} were not renewed, their records may be redelivered: {error}"
            warn_seldom(text)

    # --- looking ------------------------------------------------------------------------------------------------------

    def starts(self, partitions: Iterable[TopicIdPartition]) -> Mapping[TopicIdPartition, int]:
        return self._call(self._starts(partitions))

    async def _starts(self, partitions: Iterable[TopicIdPartition]) -> Mapping[TopicIdPartition, int]:
        await self._joined()
        client = self._client
        assert client is not None
        try:
            there = {uuid_text(topic.topic_id) for topic in (await client.all_topics()).values()}
            gone = [tp for tp in partitions if tp.topic_id not in there]
            for tp in gone:
                warn(f"the topic with id {tp.topic_id} is gone; acknowledgements of partition {tp.partition} are lost")
            found = await describe_offsets(client, self._options.group)
        except ClientError as error:
            warn_seldom(f"the start offsets of group {self._options.group} are unknown: {error}")
            return {}
        starts = {
            TopicIdPartition(uuid_text(each.topic_id), at.partition): each.start_offset
            for at, each in found.items()
            if each.start_offset is not None
        }
        return starts | dict.fromkeys(gone, OFFSET_MAX)


def _place(acquired: Acquired) -> TopicIdPartition:
    return TopicIdPartition(uuid_text(acquired.topic_id), acquired.at.partition)


def _held(acquired: Acquired) -> AcquiredPartition:
    ranges = [Acquisition(*each) for each in acquired.ranges]
    return AcquiredPartition(_place(acquired), acquired.at.topic, ranges, len(acquired.data))


def _outside(pieces: Iterable[Acquired], newer: Acquired) -> list[Acquired]:
    """The pieces without records that were delivered again."""
    ranges = [each[:2] for each in newer.ranges]
    return [
        kept
        for each in pieces
        for kept in ([each] if _place(each) != _place(newer) else _cut(each, ranges, is_in=False))
    ]


def _cut(acquired: Acquired, by: Sequence[Range], *, is_in: bool) -> list[Acquired]:
    """The parts inside of ranges, or outside."""
    ranges = tuple(
        AcquiredRange(begin, end, count)
        for first, last, count in acquired.ranges
        for begin, end, inside in cut(first, last, by)
        if inside == is_in
    )
    return [replace(acquired, ranges=ranges)] if ranges else []
