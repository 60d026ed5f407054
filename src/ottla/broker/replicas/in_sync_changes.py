"""Asks the controller for changes of in-sync replicas: one AlterPartition at a time, with all that has gathered.

What the controller does not take for now is asked for again after a pause, unless the metadata log has settled it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any, Final, Protocol

from ottla.broker.replicas.replicas import Replica
from ottla.core.replication.partition_leader import AlterOutcome, InSyncChange, PartitionLeader
from ottla.wire.types.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestBrokerState,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
)

__all__ = ["InSyncChanges"]

_VERSION: Final = 3
_PAUSE_SECONDS: Final = 0.05


class _Channel(Protocol):
    def send(self, request: object, api_version: int, done: Callable[[Any], None]) -> None: ...


class _Broker(Protocol):
    broker_id: int
    broker_epoch: int


class InSyncChanges:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: _Channel,
        broker: _Broker,
        settled: Callable[[Replica], None],
    ) -> None:
        """`settled` is told of each change."""
        self._loop = loop
        self._channel = channel
        self._broker = broker
        self._settled = settled
        self._wanted: dict[Replica, tuple[PartitionLeader, InSyncChange]] = {}
        self._is_waiting = False

    def ask(self, replica: Replica, leading: PartitionLeader, change: InSyncChange) -> None:
        self._wanted[replica] = (leading, change)
        self._send()

    def _send(self) -> None:
        if self._is_waiting or not self._wanted:
            return
        self._is_waiting = True
        asked, self._wanted = self._wanted, {}
        ordered = sorted(asked, key=lambda replica: (replica.topic_id, replica.topic_partition.partition))
        topics = tuple(
            AlterPartitionRequestTopicData(topic_id, tuple(self._partition(each, asked[each][1]) for each in replicas))
            for topic_id, replicas in groupby(ordered, lambda replica: replica.topic_id)
        )
        request = AlterPartitionRequest(self._broker.broker_id, self._broker.broker_epoch, topics)
        self._channel.send(request, _VERSION, lambda reply: self._answered(asked, reply))

    def _partition(self, replica: Replica, change: InSyncChange) -> AlterPartitionRequestPartitionData:
        return AlterPartitionRequestPartitionData(
            replica.topic_partition.partition,
            change.leader_epoch,
            new_isr_with_epochs=tuple(map(self._member, change.isr, change.broker_epochs)),
            partition_epoch=change.partition_epoch,
        )

    def _member(self, broker_id: int, broker_epoch: int) -> AlterPartitionRequestBrokerState:
        own = self._broker
        is_own = broker_id == own.broker_id
        return AlterPartitionRequestBrokerState(broker_id, own.broker_epoch if is_own else broker_epoch)

    def _answered(
        self, asked: dict[Replica, tuple[PartitionLeader, InSyncChange]], reply: AlterPartitionResponse
    ) -> None:
        self._is_waiting = False
        results = {(topic.topic_id, each.partition_index): each for topic in reply.topics for each in topic.partitions}
        for replica, (leading, change) in asked.items():
            result = results.get((replica.topic_id, replica.topic_partition.partition))
            if reply.error_code or result is None:
                outcome = leading.altered(change, reply.error_code or -1, (), -1, -1)
            else:
                outcome = leading.altered(
                    change, result.error_code, result.isr, result.leader_epoch, result.partition_epoch
                )
            if outcome is AlterOutcome.RETRY:
                self._loop.call_later(_PAUSE_SECONDS, self._again, replica, leading, change)
            elif replica.leading is leading:
                self._settled(replica)
        self._send()

    def _again(self, replica: Replica, leading: PartitionLeader, change: InSyncChange) -> None:
        if replica.leading is leading and leading.pending is change:
            self.ask(replica, leading, change)
