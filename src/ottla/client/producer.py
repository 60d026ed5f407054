"""Writing records.

    producer = Producer(client, compression="zstd", idempotent=True)
    placed = await producer.send("orders", b"tea", key=b"alice")
    await producer.send_all([ProducerRecord("orders", value) for value in values])
    await producer.send_batches(batches)              # filled by `ottla.client.row_batches` from columns

Theory of operation. `send_all` sorts the records into batches, one queue for each partition, and sends rounds: each
leader gets one request with the first batch of each of its partitions. So there is one batch of a partition on its way
at a time, records keep their order, and nothing waits in the background: when the call returns, every record has been
acknowledged. What makes it quick is giving it many records at once.

An idempotent producer has an id from the cluster and numbers its batches, so that one that is sent again after a lost
answer is not written twice. After a failure whose outcome is not known, or a call that was cancelled, the numbers are
no longer certain: the producer then takes a new id. Its calls run one after the other.

With an identity of `ottla.client.transactions` all records belong to that transaction. It keeps its id; after a failure
the transaction has to be aborted. Below transaction version 2 the identity stays the same after a commit: then
`begin_next` lets what follows belong to its next transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ottla.client.backoff import Deadline
from ottla.client.client import Answer, Client
from ottla.client.errors import ClientError, ConfigurationError, ProduceError, ResponseError, check
from ottla.client.leaders import LeaderCall, Outcomes, Reply, by_leader, by_topic
from ottla.client.metadata import Topic, TopicPartition
from ottla.client.partitioner import Sticky, partition_of_key
from ottla.client.transactions import PRODUCE_EXPLICIT_MAX, Identity, add_partitions
from ottla.wire.batch import BatchBuilder, Compression, Header, increment_sequence
from ottla.wire.batch_record import HEADER_OVERHEAD_MAX, RECORD_OVERHEAD_MAX
from ottla.wire.errors import ErrorCode
from ottla.wire.types.init_producer_id import InitProducerIdRequest
from ottla.wire.types.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
)

__all__ = ["Delivered", "Producer", "ProducerRecord"]

ALL: Final = -1
BATCH_BYTES: Final = 256 * 1024
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""What all batches of one round may take together; brokers refuse requests beyond 100 MiB."""
DELIVERY_TIMEOUT_MS: Final = 120_000
RETRIABLE: Final = frozenset(
    {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.CORRUPT_MESSAGE}
)
_NO_APPEND_TIME: Final = -1


class ProducerRecord(NamedTuple):
    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()
    partition: int | None = None
    """Where it has to go; else the key decides, or the producer."""
    timestamp_ms: int | None = None
    """When it happened; else now."""


class Delivered(NamedTuple):
    """Where a record lies now."""

    topic: str
    partition: int
    offset: int | None
    """None with acks=0, where nobody says."""
    timestamp_ms: int
    """The record's own, or the broker's where the topic says so."""


class _Identity(NamedTuple):
    producer_id: int
    producer_epoch: int


class _Batch:
    """Records for one partition, and their places in what the caller gave, if the caller asks for them."""

    def __init__(self, at: TopicPartition, builder: BatchBuilder) -> None:
        self.at = at
        self.builder = builder
        self.places: list[int] = []
        self.timestamps_ms: list[int] = []
        self.encoded: bytes | None = None

    def append(self, place: int, record: ProducerRecord, timestamp_ms: int) -> None:
        self.builder.append(timestamp_ms, record.key, record.value, record.headers)
        self.places.append(place)
        self.timestamps_ms.append(timestamp_ms)


Queues = dict[TopicPartition, deque[_Batch]]


class Producer:
    """Writes records through a client. `acks` is "all" (or -1), 1 or 0; with 0 nobody says whether it went well."""

    def __init__(
        self,
        client: Client,
        *,
        acks: int | Literal["all"] = "all",
        compression: str | Compression = Compression.NONE,
        compression_level: int | None = None,
        idempotent: bool = False,
        identity: Identity | None = None,
        batch_bytes: int = BATCH_BYTES,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
    ) -> None:
        self._client = client
        idempotent = idempotent or identity is not None
        self._acks = _acks(acks, idempotent)
        self._compression = _compression(compression)
        self._level = compression_level
        self._is_idempotent = idempotent
        self._batch_bytes = batch_bytes
        self._delivery_timeout_ms = delivery_timeout_ms
        self._sticky = Sticky()
        self._one_at_a_time = asyncio.Lock()
        self._transaction = identity
        self._identity = None if identity is None else _Identity(identity.producer_id, identity.producer_epoch)
        self._sequences: dict[TopicPartition, int] = {}
        self._joined: set[TopicPartition] = set()
        """The partitions that take part in the transaction."""

    def begin_next(self) -> None:
        """The transaction was committed; the next one of the same identity begins."""
        self._joined.clear()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivered:
        """Write one record and give its place. ProduceError if the broker refuses it."""
        (delivered,) = await self.send_all([ProducerRecord(topic, value, key, headers, partition, timestamp_ms)])
        return delivered

    async def send_all(self, records: Iterable[ProducerRecord]) -> list[Delivered]:
        """Write records and give their places, in the same order.

        If some cannot be written, the others are, except those behind them in the same partition; then ProduceError
        says why, and which were written.
        """
        given = list(records)
        deadline = Deadline(self._delivery_timeout_ms)
        topics = await self._client.topics({record.topic for record in given}, deadline)
        return await self._send_queues(len(given), self._sorted(given, topics), deadline)

    async def send_batches(self, batches: Mapping[TopicPartition, Iterable[BatchBuilder]]) -> None:
        """Write batches that are filled already, those of a partition in order.

        If some cannot be written, the others are, except those behind them in the same partition; then ProduceError
        says why.
        """
        queues = {at: deque(_Batch(at, each) for each in some) for at, some in batches.items()}
        await self._send_queues(0, queues, Deadline(self._delivery_timeout_ms))

    # --- sorting into batches -----------------------------------------------------------------------------------------

    def _sorted(self, records: Sequence[ProducerRecord], topics: dict[str, Topic]) -> Queues:
        queues: Queues = {}
        now_ms = time.time_ns() // 1_000_000
        available = {name: topic.available for name, topic in topics.items()}
        for place, record in enumerate(records):
            at = TopicPartition(record.topic, self._partition(record, topics[record.topic], available[record.topic]))
            room = self._batch_bytes - _size_max(record)
            is_anywhere = record.key is None and record.partition is None
            if is_anywhere and at in queues and queues[at][-1].builder.size_bytes > room:
                self._sticky.move_on(record.topic, available[record.topic])
                at = TopicPartition(record.topic, self._sticky.current(record.topic, available[record.topic]))
            batch = _open_batch(queues, at, room)
            batch.append(place, record, now_ms if record.timestamp_ms is None else record.timestamp_ms)
        for name in topics:
            self._sticky.move_on(name, available[name])  # what is begun now leaves now: the next call has other batches
        return queues

    def _partition(self, record: ProducerRecord, topic: Topic, available: Sequence[int]) -> int:
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, len(topic.partitions))
        return self._sticky.current(topic.name, available)

    # --- sending ------------------------------------------------------------------------------------------------------

    async def _send_queues(self, count: int, queues: Queues, deadline: Deadline) -> list[Delivered]:
        if not self._is_idempotent:
            return await self._send_rounds(count, queues, deadline)
        async with self._one_at_a_time:
            try:
                return await self._send_rounds(count, queues, deadline)
            except BaseException:  # a call that is cancelled leaves a batch under way, too
                self._doubt()
                raise

    async def _send_rounds(self, count: int, queues: Queues, deadline: Deadline) -> list[Delivered]:
        delivered: list[Delivered | None] = [None] * count
        failure: ClientError | None = None
        while queues:
            front = _front(queues)
            outcomes = await self._send_batches(front, deadline)
            for at, outcome in outcomes.items():
                if isinstance(outcome, ClientError):
                    failure = failure or outcome
                    del queues[at]
                    continue
                self._settle(front[at], outcome, delivered)
                queues[at].popleft()
                if not queues[at]:
                    del queues[at]
            if any(isinstance(outcome, ClientError) for outcome in outcomes.values()):
                self._doubt()
        if failure is not None:
            raise _produce_error(failure, delivered)
        return [each for each in delivered if each is not None]

    async def _send_batches(
        self, batches: dict[TopicPartition, _Batch], deadline: Deadline
    ) -> Outcomes[ProduceResponsePartitionProduceResponse]:
        if self._is_idempotent and self._identity is None:
            self._identity = await self._introduce(deadline)
        for batch in batches.values():
            batch.encoded = self._encoded(batch)
        if self._acks == 0:
            return await self._post(batches, deadline)
        await self._join(batches)

        names: dict[bytes, str] = {}

        def build(partitions: list[TopicPartition], _: int) -> ProduceRequest:
            request = self._request([batches[at] for at in partitions])
            names.update({topic.topic_id: topic.name for topic in request.topic_data})
            return request

        def read(answer: Answer) -> Iterable[Reply[ProduceResponsePartitionProduceResponse]]:
            return self._read(answer, names)

        is_explicit = self._transaction is not None and not self._transaction.is_implicit
        call = LeaderCall("Produce", build, read, RETRIABLE, PRODUCE_EXPLICIT_MAX if is_explicit else None)
        return await call.ask(self._client, batches, deadline)

    async def _join(self, partitions: Iterable[TopicPartition]) -> None:
        """Let partitions that nothing was written to yet take part in the transaction."""
        new = [at for at in partitions if at not in self._joined]
        if new and self._transaction is not None and not self._transaction.is_implicit:
            await add_partitions(self._client, self._transaction, new)
            self._joined.update(new)

    async def _post(
        self, batches: dict[TopicPartition, _Batch], deadline: Deadline
    ) -> Outcomes[ProduceResponsePartitionProduceResponse]:
        leaders, errors = await by_leader(self._client, batches, deadline)
        outcomes: Outcomes[ProduceResponsePartitionProduceResponse] = dict(errors)
        for node_id, partitions in leaders.items():
            try:
                peer = await self._client.node_peer(node_id, deadline)
                await self._client.post(peer, self._request([batches[at] for at in partitions]))
            except ClientError as error:
                outcomes.update(dict.fromkeys(partitions, error))
            else:
                outcomes.update(dict.fromkeys(partitions, ProduceResponsePartitionProduceResponse(base_offset=-1)))
        return outcomes

    def _request(self, batches: Iterable[_Batch]) -> ProduceRequest:
        by_partition = {batch.at: batch for batch in batches}
        return ProduceRequest(
            transactional_id=None if self._transaction is None else self._transaction.transactional_id,
            acks=self._acks,
            timeout_ms=self._client.settings.request_timeout_ms,
            topic_data=tuple(
                ProduceRequestTopicProduceData(
                    name=name,
                    topic_id=self._client.metadata.id_of(name),
                    partition_data=tuple(
                        ProduceRequestPartitionProduceData(at.partition, by_partition[at].encoded) for at in partitions
                    ),
                )
                for name, partitions in by_topic(by_partition).items()
            ),
        )

    def _read(
        self, answer: Answer, names: Mapping[bytes, str]
    ) -> Iterable[Reply[ProduceResponsePartitionProduceResponse]]:
        """`names` are those of the topics that were asked for: the client may have forgotten some meanwhile."""
        body = answer.of(ProduceResponse)
        metadata = self._client.metadata
        for topic in body.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for each in topic.partition_responses:
                at = TopicPartition(name, each.index)
                if each.error_code:
                    metadata.learn_leader(
                        at, each.current_leader.leader_id, each.current_leader.leader_epoch, body.node_endpoints
                    )
                yield Reply(at, each.error_code, _explained(each), each)

    def _settle(
        self, batch: _Batch, reply: ProduceResponsePartitionProduceResponse, delivered: list[Delivered | None]
    ) -> None:
        """Note where the records of a batch lie, and which number the next one of the partition has."""
        append_time_ms = reply.log_append_time_ms
        for delta, (place, timestamp_ms) in enumerate(zip(batch.places, batch.timestamps_ms, strict=True)):
            offset = None if reply.base_offset < 0 else reply.base_offset + delta
            when_ms = timestamp_ms if append_time_ms == _NO_APPEND_TIME else append_time_ms
            delivered[place] = Delivered(batch.at.topic, batch.at.partition, offset, when_ms)
        if self._is_idempotent:
            self._sequences[batch.at] = increment_sequence(self._sequences.get(batch.at, 0), len(batch.builder))

    # --- who we are ---------------------------------------------------------------------------------------------------

    def _encoded(self, batch: _Batch) -> bytes:
        if batch.encoded is not None:
            return batch.encoded
        compression, level = self._compression, self._level
        if self._identity is None:
            return batch.builder.build(compression=compression, level=level)
        return batch.builder.build(
            compression=compression,
            level=level,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=self._sequences.get(batch.at, 0),
            is_transactional=self._transaction is not None,
        )

    async def _introduce(self, deadline: Deadline) -> _Identity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=(1 << 31) - 1)
        answer = await self._client.send(request, timeout_ms=max(1, deadline.left_ms))
        check(None, "InitProducerId", answer.error_code)
        return _Identity(answer.producer_id, answer.producer_epoch)

    def _doubt(self) -> None:
        """A batch failed: the broker may have it or not, so its number must not be given to another one."""
        if self._transaction is None:
            self._identity = None
            self._sequences.clear()


def _open_batch(queues: Queues, at: TopicPartition, size_max: int) -> _Batch:
    """The last batch of a partition, or another if that one is larger than `size_max` already."""
    queue = queues.setdefault(at, deque())
    if not queue or queue[-1].builder.size_bytes > size_max:
        queue.append(_Batch(at, BatchBuilder()))
    return queue[-1]


def _size_max(record: ProducerRecord) -> int:
    """What a record takes in a batch at most."""
    size = RECORD_OVERHEAD_MAX + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += HEADER_OVERHEAD_MAX + len(name.encode()) + len(value or b"")
    return size


def _front(queues: Queues) -> dict[TopicPartition, _Batch]:
    """The first batch of each partition, as many as one round may take."""
    front: dict[TopicPartition, _Batch] = {}
    size = 0
    for at, queue in queues.items():
        size += queue[0].builder.size_bytes
        if front and size > REQUEST_BYTES_MAX:
            break
        front[at] = queue[0]
    return front


def _explained(reply: ProduceResponsePartitionProduceResponse) -> str | None:
    """The broker's message, with what it says of single records."""
    singles = [
        f"record {each.batch_index}: {each.batch_index_error_message}"
        for each in reply.record_errors
        if each.batch_index_error_message
    ]
    return "; ".join(filter(None, [reply.error_message, *singles])) or None


def _produce_error(failure: ClientError, delivered: list[Delivered | None]) -> ClientError:
    if isinstance(failure, ResponseError) and failure.api == "Produce":
        return ProduceError(failure.peer, failure.code, failure.about, failure.message, delivered)
    return failure


def _acks(acks: int | Literal["all"], idempotent: bool) -> int:
    number = ALL if acks == "all" else acks
    if number not in (ALL, 0, 1):
        raise ConfigurationError(f"acks is {acks!r}; it can be all, 1 or 0")
    if idempotent and number != ALL:
        raise ConfigurationError("an idempotent producer needs acks=all")
    return number


def _compression(codec: str | Compression) -> Compression:
    try:
        return codec if isinstance(codec, Compression) else Compression[codec.upper()]
    except KeyError:
        names = ", ".join(each.name.lower() for each in Compression)
        raise ConfigurationError(f"unknown compression {codec!r}; known: {names}") from None
