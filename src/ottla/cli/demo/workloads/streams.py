"""A member of the streams group (KIP-1071) for machines without Java: real heartbeats and tasks, no Kafka Streams.

The topology is one subtopology that reads lines; a task is a partition of it.
"""

from __future__ import annotations

import uuid
from typing import Final

from ottla.cli.demo.plan import LINES, WORD_TOTALS
from ottla.cli.demo.workloads.member import Place, Reader, stay
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.client import Client, TopicPartition
from ottla.client.errors import check
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest

__all__ = ["run"]

SUBTOPOLOGY: Final = "0"
JOINING: Final = 0
LEAVING: Final = -1
REJOIN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
REBALANCE_TIMEOUT_MS: Final = 60_000


async def run(given: Ordered) -> None:
    async with given.client() as client:
        await stay(given, _Heartbeats(client), Reader(client, WORD_TOTALS, given.journal))


class _Heartbeats:
    interval_s = 0.0

    def __init__(self, client: Client) -> None:
        self._client = client
        self._member_id = uuid_text(uuid.uuid4().bytes)
        self._process_id = uuid_text(uuid.uuid4().bytes)
        self._epoch = JOINING
        self._wanted: Place = frozenset()

    async def beat(self, reader: Reader) -> Place:
        answer = await self._client.send(self._request(reader.owned), coordinator=("group", WORD_TOTALS))
        if answer.error_code in REJOIN:
            for at in reader.owned:
                reader.forget(at)
            self._epoch, self._wanted = JOINING, frozenset()
            return self._wanted
        check(None, "StreamsGroupHeartbeat", answer.error_code, f"group {WORD_TOTALS}", answer.error_message)
        self._epoch = reader.epoch = answer.member_epoch
        reader.member_id = self._member_id
        self.interval_s = answer.heartbeat_interval_ms / 1000
        if answer.active_tasks is not None:
            self._wanted = frozenset(
                TopicPartition(LINES, index) for each in answer.active_tasks for index in each.partitions
            )
        return self._wanted

    def _request(self, owned: Place) -> StreamsGroupHeartbeatRequest:
        kind = StreamsGroupHeartbeatRequest
        if self._epoch == JOINING:
            return kind(
                group_id=WORD_TOTALS,
                member_id=self._member_id,
                member_epoch=JOINING,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                topology=kind.Topology(0, (kind.Subtopology(SUBTOPOLOGY, source_topics=(LINES,)),)),
                active_tasks=(),
                standby_tasks=(),
                warmup_tasks=(),
                process_id=self._process_id,
                client_tags=(),
            )
        tasks = kind.TaskIds(SUBTOPOLOGY, tuple(sorted(at.partition for at in owned)))
        return kind(
            group_id=WORD_TOTALS,
            member_id=self._member_id,
            member_epoch=self._epoch,
            active_tasks=(tasks,) if owned else (),
            standby_tasks=(),
            warmup_tasks=(),
        )

    async def leave(self, reader: Reader) -> None:
        if self._epoch != JOINING:
            farewell = StreamsGroupHeartbeatRequest(
                group_id=WORD_TOTALS, member_id=self._member_id, member_epoch=LEAVING
            )
            await self._client.send(farewell, coordinator=("group", WORD_TOTALS))
