"""Changes of in-sync replicas on their way to the controller, and what its answers mean."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ottla.broker.replicas.in_sync_changes import InSyncChanges
from ottla.broker.replicas.replicas import Replica
from ottla.core.replication.partition_leader import InSyncChange, PartitionLeader
from ottla.log.names import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_partition import AlterPartitionRequest, AlterPartitionResponse

BROKER_EPOCH = 10


class Channel:
    """Keeps what is asked until the test answers."""

    def __init__(self) -> None:
        self.sent: list[tuple[AlterPartitionRequest, Callable[[Any], None]]] = []

    def send(self, request: Any, api_version: int, done: Callable[[Any], None]) -> None:
        self.sent.append((request, done))

    def answer(self, error_code: int = 0, *, partition_epoch: int = -1) -> None:
        """Answer the oldest request: it was done, or refused."""
        request, done = self.sent.pop(0)
        (topic,), kind = request.topics, AlterPartitionResponse
        (asked,) = topic.partitions
        isr = () if error_code else tuple(each.broker_id for each in asked.new_isr_with_epochs)
        leader_epoch = -1 if error_code else 5
        told = kind.PartitionData(0, error_code, 1, leader_epoch, isr, partition_epoch=partition_epoch)
        done(kind(topics=(kind.TopicData(topic.topic_id, (told,)),)))


class Scene:
    """Node 1 leads a partition of nodes 1 to 3, whose followers have it all and are not in sync."""

    def __init__(self) -> None:
        self.channel = Channel()
        broker: Any = SimpleNamespace(broker_id=1, broker_epoch=BROKER_EPOCH)
        self.leading = PartitionLeader(
            1,
            (1, 2, 3),
            (1,),
            leader_epoch=5,
            partition_epoch=9,
            epoch_start_offset=0,
            now_ms=0,
            lag_max_ms=30_000,
            is_eligible=lambda broker_id, broker_epoch: True,
        )
        nothing: Any = None
        self.replica = Replica(nothing, TopicPartition("orders", 0), bytes(16), nothing)
        self.replica.leading = self.leading
        self.changes = InSyncChanges(nothing, self.channel, broker, settled=lambda replica: None)

    def join(self, replica_id: int) -> None:
        """A follower fetches, and has it all."""
        self.leading.fetched(replica_id, 10, log_start_offset=0, broker_epoch=replica_id, end_offset=10, now_ms=0)
        change = self.leading.expand(replica_id, 10)
        assert isinstance(change, InSyncChange)
        self.changes.ask(self.replica, self.leading, change)


def test_the_answer_to_a_change_that_the_metadata_log_has_told_of_says_nothing_of_the_next() -> None:
    """Or the high watermark would not wait for a replica that the controller is about to take for one in sync."""
    scene = Scene()
    scene.join(2)
    scene.leading.follow((1, 2, 3), (1, 2), 10, 0)
    scene.join(3)
    scene.channel.answer(partition_epoch=10)
    assert scene.leading.maximal_isr == {1, 2, 3}
    assert scene.leading.expand(3, 10) is None, "it was asked for, and is not answered"
    scene.channel.answer(partition_epoch=11)
    assert scene.leading.isr == (1, 2, 3)
    assert scene.leading.pending is None
    assert not scene.channel.sent


def test_a_refusal_of_an_earlier_change_says_nothing_of_the_next() -> None:
    scene = Scene()
    scene.join(2)
    scene.leading.follow((1, 2, 3), (1,), 10, 0)
    scene.join(3)
    scene.channel.answer(ErrorCode.INELIGIBLE_REPLICA)
    assert scene.leading.maximal_isr == {1, 3}
