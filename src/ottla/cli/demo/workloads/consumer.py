"""A member of the consumer group (KIP-848)."""

from __future__ import annotations

from ottla.cli.demo.plan import BILLING, ORDERS
from ottla.cli.demo.workloads.coordinated import JOINING, LEAVING, REBALANCE_TIMEOUT_MS, Coordinated
from ottla.cli.demo.workloads.member import Assignment, Reader, stay
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.client import TopicPartition
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

__all__ = ["run"]


async def run(given: Ordered) -> None:
    async with given.client() as client:
        await stay(given, _Heartbeats(client), Reader(client, BILLING, given.journal))


class _Heartbeats(Coordinated):
    group = BILLING

    async def send(self, owned: Assignment) -> ConsumerGroupHeartbeatResponse:
        topics = await self.client.topics({ORDERS}, self.client.deadline())
        request = self._request(owned, topics[ORDERS].topic_id)
        answer = await self.client.send(request, coordinator=("group", BILLING))
        if answer.assignment is not None:
            assigned = answer.assignment.topic_partitions
            self.wanted = frozenset(TopicPartition(ORDERS, index) for each in assigned for index in each.partitions)
        return answer

    def _request(self, owned: Assignment, topic_id: bytes) -> ConsumerGroupHeartbeatRequest:
        is_new = self.epoch == JOINING
        mine = ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, tuple(sorted(at.partition for at in owned)))
        return ConsumerGroupHeartbeatRequest(
            group_id=BILLING,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_new else -1,
            subscribed_topic_names=(ORDERS,) if is_new else None,
            topic_partitions=(mine,) if owned else (),
        )

    async def send_farewell(self) -> None:
        farewell = ConsumerGroupHeartbeatRequest(BILLING, self.member_id, LEAVING)
        await self.client.send(farewell, coordinator=("group", BILLING))
