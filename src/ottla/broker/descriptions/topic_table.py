"""A compacted topic of the cluster as a table in memory, for plugins.

The topic has one partition, which the node reads and writes through its own replica: no connection, no listener, no
rights. What is known of it is read from its log, at the start and again with every leader epoch; so it is the same on
whichever node leads the partition. Records whose value is too large for the topic are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.loader import load_steps
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.log.errors import LogError, StorageError
from ottla.log.producer_state import Origin
from ottla.topology_descriptions import PermanentFailure, TransientFailure
from ottla.wire.batch import AnyBatch, BatchBuilder, BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from ottla.broker.descriptions.ports import TopicTablePorts
    from ottla.broker.replicas.replicas import Replica

__all__ = ["ReplicaTable"]

_CREATE_VERSION: Final = 7
_WRITE_MS: Final = 25_000
"""Less than what a call of a plugin has."""
_ALL: Final = -1


class _Reading:
    """Takes batches as `load_steps` reads them."""

    def __init__(self) -> None:
        self.table: dict[bytes, bytes] = {}

    def steps(self, batch: AnyBatch) -> Iterator[None]:
        if not (isinstance(batch, BatchView) and batch.is_control):
            for record in batch.records():
                if record.key is not None:
                    put(self.table, bytes(record.key), None if record.value is None else bytes(record.value))
        yield


def put(table: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


class ReplicaTable:
    def __init__(self, node: TopicTablePorts, topic: str) -> None:
        self._node = node
        self._topic = topic
        self._table: dict[bytes, bytes] = {}
        self._read_of: tuple[bytes, int] | None = None
        """The topic id and the leader epoch of which the table was read."""
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """See to it that the topic is there, and that what it says is known."""
        await self._led()

    async def get(self, key: bytes) -> bytes | None:
        await self._led()
        return self._table.get(key)

    async def put(self, key: bytes, value: bytes | None) -> None:
        replica = await self._led()
        batch = BatchBuilder()
        batch.append(self._node.clock.wall_ms(), key, value)
        try:
            end_offset = replica.stage(batch.build(), origin=Origin.COORDINATOR).last_offset + 1
        except LogError as error:
            if error.code == ErrorCode.MESSAGE_TOO_LARGE:
                raise PermanentFailure(f"{len(value or b'')} bytes are more than {self._topic} takes") from None
            raise TransientFailure(str(error)) from error
        self._node.unit_of_work.end_connection()
        await self._committed(replica, end_offset)
        if self._read_of == (replica.topic_id, replica.leader_epoch):
            put(self._table, key, value)

    async def _committed(self, replica: Replica, end_offset: int) -> None:
        """Return when what was written is on all replicas that must have it."""
        written: asyncio.Future[bool] = self._node.loop.create_future()

        def attempt(expired: bool) -> bool:
            try:
                is_done = replica.is_leader and replica.is_acknowledged(end_offset, _ALL)
            except StorageError:
                expired, is_done = True, False
            if (is_done or expired) and not written.done():
                written.set_result(is_done)
            return written.done()

        if not attempt(False):
            delayed = DelayedOperation(attempt, (replica.topic_partition,), self._node.clock.monotonic_ms() + _WRITE_MS)
            if not self._node.purgatory.park(delayed):
                raise TransientFailure("the broker is stopping")
        if not await written:
            raise TransientFailure(f"what was written to {self._topic} is not committed")

    # --- the topic ----------------------------------------------------------------------------------------------------

    async def _led(self) -> Replica:
        """The partition, which this node must lead, with the table read from it."""
        async with self._lock:
            replica = self._replica()
            if replica is None:
                await self._create()
                replica = self._replica()
            if replica is None or not replica.is_leader or replica.is_offline:
                raise TransientFailure(f"this broker does not lead {self._topic}")
            if self._read_of != (replica.topic_id, replica.leader_epoch):
                await self._read(replica)
            return replica

    def _replica(self) -> Replica | None:
        return self._node.replicas.get(self._topic, 0)

    async def _read(self, replica: Replica) -> None:
        reading = _Reading()
        read_of = (replica.topic_id, replica.leader_epoch)
        for _ in load_steps(replica.log, reading):
            await asyncio.sleep(0)
        self._table, self._read_of = reading.table, read_of

    async def _create(self) -> None:
        created: asyncio.Future[CreateTopicsResponse] = self._node.loop.create_future()
        config = CreateTopicsRequest.CreatableTopicConfig("cleanup.policy", "compact")
        topic = CreateTopicsRequest.CreatableTopic(self._topic, 1, -1, configs=(config,))
        self._node.controller_channel.send(CreateTopicsRequest((topic,)), _CREATE_VERSION, created.set_result)
        (answer,) = (await created).topics
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise TransientFailure(f"{self._topic} cannot be created: {answer.error_message or answer.error_code}")
