"""A compacted topic of the cluster as a table in memory, for plugins.

The topic has one partition. Before a value is given, what has been committed since the last time is read: from this
node's own log if it leads the partition, else from its leader. So every node has the same table, whoever leads it.
Records whose value is too large for the topic are refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.coordinators.loader import load_steps
from ottla.broker.peers.peer_connection import PeerError
from ottla.broker.replicas.end_offsets import EndOffsets, ask_end_offsets
from ottla.broker.replicas.record_writer import write_batches
from ottla.log.errors import LogError
from ottla.topology_descriptions import PermanentFailure, TransientFailure
from ottla.wire.batch import AnyBatch, BatchBuilder, BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.types.fetch import FetchRequest

if TYPE_CHECKING:
    from ottla.broker.descriptions.ports import TopicTablePorts
    from ottla.core.metadata.topic_image import TopicImage

__all__ = ["CompactedTopicTable"]

log = logging.getLogger(__name__)

_CREATE_VERSION: Final = 7
_FETCH_VERSIONS: Final = (13, 18)
_FETCH_BYTES: Final = 1 << 20
_NO_SESSION: Final = -1
_PARTITION: Final = 0


class _Table:
    """What has been read."""

    def __init__(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self.end_offset = 0
        """Everything before was read."""
        self.values: dict[bytes, bytes] = {}

    def steps(self, batch: AnyBatch) -> Iterator[None]:
        """Take a batch, as `load_steps` reads it."""
        if not (isinstance(batch, BatchView) and batch.is_control):
            for record in batch.records():
                if record.key is not None:
                    self._put(bytes(record.key), None if record.value is None else bytes(record.value))
        self.end_offset = batch.last_offset + 1
        yield

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value


class CompactedTopicTable:
    def __init__(self, node: TopicTablePorts, topic: str) -> None:
        self._node = node
        self._topic = topic
        self._table = _Table(b"")
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """See to it that the topic is there; what it says is read when somebody asks.

        Where that does not work yet, such as on the first of three nodes, it is tried again then.
        """
        try:
            await self._existing()
        except TransientFailure as failure:
            log.warning("%s", failure)

    async def get(self, key: bytes) -> bytes | None:
        async with self._lock:
            await self._catch_up()
            return self._table.values.get(key)

    async def put(self, key: bytes, value: bytes | None) -> None:
        await self._existing()
        batch = BatchBuilder()
        batch.append(self._node.clock.wall_ms(), key, value)
        written: asyncio.Future[tuple[ErrorCode, str]] = self._node.loop.create_future()

        def done(code: ErrorCode, message: str) -> None:
            if not written.done():
                written.set_result((code, message))

        write_batches(self._node, self._topic, _PARTITION, [batch.build()], done)
        code, message = await written
        if code == ErrorCode.MESSAGE_TOO_LARGE:
            raise PermanentFailure(f"{len(value or b'')} bytes are more than {self._topic} accepts")
        if code:
            raise TransientFailure(f"cannot write to {self._topic} now: {message}")

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Read what was committed since the last time."""
        topic = await self._existing()
        end_offset = await self._end_offset()
        table = self._table
        if topic.topic_id != table.topic_id or end_offset < table.end_offset:
            # It is another topic, or its leader was elected without all that was committed.
            table = _Table(topic.topic_id)
        if topic.partitions[_PARTITION].leader == self._node.node_id:
            await self._read_own(table, end_offset)
        else:
            await self._fetch(table, end_offset)
        self._table = table

    async def _end_offset(self) -> int:
        found: asyncio.Future[EndOffsets] = self._node.loop.create_future()
        at = (self._topic, _PARTITION)
        ask_end_offsets(self._node, [at], lambda ends: None if found.done() else found.set_result(ends))
        end_offset = (await found)[at]
        if isinstance(end_offset, ErrorCode):
            raise TransientFailure(f"the end offset of {self._topic} is unknown: {end_offset.name}")
        return end_offset

    async def _read_own(self, table: _Table, end_offset: int) -> None:
        if table.end_offset >= end_offset:
            return
        replica = self._node.replicas.get(self._topic, _PARTITION)
        if replica is None or replica.is_offline:
            raise TransientFailure(f"{self._topic} cannot be read now")
        try:
            for _ in load_steps(replica.log, table, table.end_offset, end_offset):
                await asyncio.sleep(0)
        except LogError as error:
            raise TransientFailure(f"{self._topic} cannot be read: {error}") from error

    async def _fetch(self, table: _Table, end_offset: int) -> None:
        while table.end_offset < end_offset:
            before = table.end_offset
            for batch in split_batches(await self._records(table)):
                if batch.last_offset >= table.end_offset:
                    for _ in table.steps(batch):
                        await asyncio.sleep(0)
            if table.end_offset == before:
                return  # what was at the end is gone: compacted

    async def _records(self, table: _Table) -> Any:  # noqa: ANN401
        """The next records, from the leader."""
        topic = await self._existing()
        kind = FetchRequest
        wanted = kind.FetchPartition(_PARTITION, fetch_offset=table.end_offset, partition_max_bytes=_FETCH_BYTES)
        request = kind(
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=_NO_SESSION,
            topics=(kind.FetchTopic(topic_id=table.topic_id, partitions=(wanted,)),),
        )
        answered: asyncio.Future[Any] = self._node.loop.create_future()
        self._node.brokers.send(
            topic.partitions[_PARTITION].leader,
            request,
            _FETCH_VERSIONS,
            lambda response: None if answered.done() else answered.set_result(response),
        )
        response = await answered
        if isinstance(response, PeerError):
            raise TransientFailure(f"{self._topic} cannot be read: {response}")
        code = response.error_code or response.responses[0].partitions[0].error_code
        if code:
            raise TransientFailure(f"{self._topic} cannot be read: {ErrorCode(code).name}")
        return response.responses[0].partitions[0].records or b""

    # --- the topic ----------------------------------------------------------------------------------------------------

    async def _existing(self) -> TopicImage:
        topic = self._node.image.topic(self._topic)
        if topic is None:
            await self._create()
            topic = self._node.image.topic(self._topic)
        if topic is None:
            raise TransientFailure(f"{self._topic} does not exist")
        return topic

    async def _create(self) -> None:
        config = CreateTopicsRequest.CreatableTopicConfig("cleanup.policy", "compact")
        topic = CreateTopicsRequest.CreatableTopic(self._topic, 1, -1, configs=(config,))
        reply: CreateTopicsResponse = await self._node.controller_channel.call(
            CreateTopicsRequest((topic,)), _CREATE_VERSION
        )
        (answer,) = reply.topics
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise TransientFailure(f"{self._topic} cannot be created: {answer.error_message or answer.error_code}")
