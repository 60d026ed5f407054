"""The writer of a shard on a node's own partition."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.coordinators.counts import RuntimeCounts
from ottla.broker.coordinators.partition_writer import ReplicaWriter
from ottla.broker.replicas.replicas import Replica
from ottla.core.coordinator.contract import Producer
from ottla.core.coordinator.records import encode_record
from ottla.log.errors import LogError
from ottla.wire.batch import BatchBuilder, Compression
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types import DeleteTopicsRequest
from tests.component.broker.raw_client import RunningNode, Topic, batch, batches
from tests.unit.broker.coordinators.ledger import put


def builder(count: int = 1) -> BatchBuilder:
    made = BatchBuilder()
    for number in range(count):
        made.append(1_700_000_000_000, *encode_record(put("a", number)))
    return made


def replica_of(running: RunningNode, topic: Topic) -> Replica:
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None
    return replica


def writer_of(running: RunningNode, topic: Topic, compression: Compression = Compression.NONE) -> ReplicaWriter:
    replica = replica_of(running, topic)
    return ReplicaWriter(
        replica, replica.leader_epoch, lambda: 1_700_000_000_000, RuntimeCounts(), compression=compression
    )


def in_node(running: RunningNode, step: Any) -> Any:
    """What a step gives, or raises, in the node's thread."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(step())
        except (LogError, Reject) as error:
            outcome.append(error)
        running.node.write_staged()

    running.change(run)
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def test_nothing_is_made_before_the_first_append(running: RunningNode) -> None:
    writer = writer_of(running, running.client.topic())
    assert (writer.log_end_offset, writer.high_watermark) == (0, 0)
    assert not writer.replica.has_log
    assert in_node(running, lambda: writer.stage(builder(3), None)) == 0
    assert (writer.log_end_offset, writer.high_watermark) == (3, 3)


def test_the_end_counts_what_is_staged(running: RunningNode) -> None:
    writer = writer_of(running, running.client.topic())

    def step() -> tuple[int, int, int]:
        writer.stage(builder(2), None)
        return writer.stage(builder(1), None), writer.log_end_offset, writer.high_watermark

    assert in_node(running, step) == (2, 3, 0)


def test_batches_are_compressed_if_the_setting_says_so(running: RunningNode) -> None:
    topic = running.client.topic()
    in_node(running, lambda: writer_of(running, topic, Compression.ZSTD).stage(builder(50), None))
    (written,) = batches(running.client.fetch(topic))
    assert written.compression is Compression.ZSTD
    assert len(list(written.records())) == 50


def test_a_batch_may_be_as_large_as_the_topic_allows(running: RunningNode) -> None:
    writer = writer_of(running, running.client.topic(max_message_bytes=5_000))
    assert in_node(running, lambda: writer.batch_max_bytes) == 5_000


def test_a_stale_guard_makes_an_append_void(running: RunningNode) -> None:
    writer = writer_of(running, running.client.topic())
    producer = Producer(7, 0)
    guard = in_node(running, lambda: writer.verification_guard(7))
    assert in_node(running, lambda: writer.stage(builder(), producer._replace(guard=guard))) == 0
    end = {"committed": True, "coordinator_epoch": 0, "transaction_version": 1}
    assert in_node(running, lambda: writer.stage_marker(producer, **end)) == 1
    with pytest.raises(LogError) as refused:
        in_node(running, lambda: writer.stage(builder(), producer._replace(guard=guard)))
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    assert in_node(running, lambda: writer.stage(builder(), producer)) == 2, "asked in this very step"


def test_another_epoch_is_not_led(running: RunningNode) -> None:
    topic = running.client.topic()
    replica = replica_of(running, topic)
    assert writer_of(running, topic).is_led
    older = ReplicaWriter(replica, replica.leader_epoch - 1, lambda: 0, RuntimeCounts())
    assert not older.is_led


def test_a_topic_that_is_gone_does_not_come_back(running: RunningNode) -> None:
    topic = running.client.topic()
    in_node(running, lambda: replica_of(running, topic).stage(batch(b"x")))
    writer = writer_of(running, topic)
    running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    assert not writer.is_led
    for step in (lambda: writer.stage(builder(), None), lambda: writer.batch_max_bytes):
        with pytest.raises(Reject) as refused:
            in_node(running, step)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not writer.replica.has_log
