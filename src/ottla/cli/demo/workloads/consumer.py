"""A member of the consumer group (KIP-848): it says what it has, and hears what it is to have."""

from __future__ import annotations

import uuid
from typing import Final

from ottla.cli.demo.plan import BILLING, ORDERS
from ottla.cli.demo.workloads.member import Place, Reader, stay
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.client import Client, TopicPartition
from ottla.client.errors import check
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

__all__ = ["run"]

JOINING: Final = 0
LEAVING: Final = -1
REJOIN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
REBALANCE_TIMEOUT_MS: Final = 60_000


async def run(given: Ordered) -> None:
    async with given.client() as client:
        await stay(given, _Heartbeats(client), Reader(client, BILLING, given.journal))


class _Heartbeats:
    interval_s = 0.0

    def __init__(self, client: Client) -> None:
        self._client = client
        self._member_id = uuid_text(uuid.uuid4().bytes)
        self._epoch = JOINING
        self._wanted: Place = frozenset()

    async def beat(self, reader: Reader) -> Place:
        topics = await self._client.topics({ORDERS}, self._client.deadline())
        topic_id = topics[ORDERS].topic_id
        answer = await self._client.send(self._request(reader.owned, topic_id), coordinator=("group", BILLING))
        if answer.error_code in REJOIN:
            for at in reader.owned:
                reader.forget(at)
            self._epoch, self._wanted = JOINING, frozenset()
            return self._wanted
        check(None, "ConsumerGroupHeartbeat", answer.error_code, f"group {BILLING}", answer.error_message)
        self._epoch = reader.epoch = answer.member_epoch
        reader.member_id = self._member_id
        self.interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            self._wanted = frozenset(
                TopicPartition(ORDERS, index)
                for each in answer.assignment.topic_partitions
                for index in each.partitions
            )
        return self._wanted

    def _request(self, owned: Place, topic_id: bytes) -> ConsumerGroupHeartbeatRequest:
        is_new = self._epoch == JOINING
        mine = ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, tuple(sorted(at.partition for at in owned)))
        return ConsumerGroupHeartbeatRequest(
            group_id=BILLING,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_new else -1,
            subscribed_topic_names=(ORDERS,) if is_new else None,
            topic_partitions=(mine,) if owned else (),
        )

    async def leave(self, reader: Reader) -> None:
        if self._epoch != JOINING:
            farewell = ConsumerGroupHeartbeatRequest(BILLING, self._member_id, LEAVING)
            await self._client.send(farewell, coordinator=("group", BILLING))
