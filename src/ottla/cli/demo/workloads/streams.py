"""A member of the streams group (KIP-1071) for machines without Java: real heartbeats and tasks, no Kafka Streams.

The topology is one subtopology that reads lines; a task is a partition of it.
"""

from __future__ import annotations

import uuid
from typing import Final

from ottla.cli.demo.plan import LINES, WORD_TOTALS
from ottla.cli.demo.workloads.coordinated import JOINING, LEAVING, REBALANCE_TIMEOUT_MS, Coordinated
from ottla.cli.demo.workloads.member import Assignment, Reader, stay
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.client import TopicPartition
from ottla.wire import uuid_text
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

__all__ = ["run"]

SUBTOPOLOGY: Final = "0"
PROCESS_ID: Final = uuid_text(uuid.uuid4().bytes)


async def run(given: Ordered) -> None:
    async with given.client() as client:
        await stay(given, _Heartbeats(client), Reader(client, WORD_TOTALS, given.journal))


class _Heartbeats(Coordinated):
    group = WORD_TOTALS

    async def send(self, owned: Assignment) -> StreamsGroupHeartbeatResponse:
        request = self._joining() if self.epoch == JOINING else self._staying(owned)
        answer = await self.client.send(request, coordinator=("group", WORD_TOTALS))
        if answer.active_tasks is not None:
            tasks = answer.active_tasks
            self.wanted = frozenset(TopicPartition(LINES, index) for each in tasks for index in each.partitions)
        return answer

    def _joining(self) -> StreamsGroupHeartbeatRequest:
        kind = StreamsGroupHeartbeatRequest
        return kind(
            group_id=WORD_TOTALS,
            member_id=self.member_id,
            member_epoch=JOINING,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            topology=kind.Topology(0, (kind.Subtopology(SUBTOPOLOGY, source_topics=(LINES,)),)),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id=PROCESS_ID,
            client_tags=(),
        )

    def _staying(self, owned: Assignment) -> StreamsGroupHeartbeatRequest:
        tasks = StreamsGroupHeartbeatRequest.TaskIds(SUBTOPOLOGY, tuple(sorted(at.partition for at in owned)))
        return StreamsGroupHeartbeatRequest(
            group_id=WORD_TOTALS,
            member_id=self.member_id,
            member_epoch=self.epoch,
            active_tasks=(tasks,) if owned else (),
            standby_tasks=(),
            warmup_tasks=(),
        )

    async def send_farewell(self) -> None:
        farewell = StreamsGroupHeartbeatRequest(group_id=WORD_TOTALS, member_id=self.member_id, member_epoch=LEAVING)
        await self.client.send(farewell, coordinator=("group", WORD_TOTALS))
