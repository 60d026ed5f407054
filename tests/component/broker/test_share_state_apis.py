"""The state of share partitions over the network: who may ask, where it is kept, and what the node does by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.internal_topics import SHARE_STATE
from ottla.broker.loop.clock import ManualClock
from ottla.core.share.state.kept import Key
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DeleteTopicsRequest, DescribeConfigsRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, running_node
from tests.component.broker.share_state_client import begin
from tests.unit.broker.share_state_requests import codes, delete, initialize, read, results, summarize, write

UNKNOWN_ID = bytes([9]) * 16
STATE_TOPIC = SHARE_STATE.name
ALL = [(initialize, 0), (read, 0), (write, 1), (delete, 0), (summarize, 1)]


def deny_strangers(request: Any, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    return (operation, resource_type) != (Operation.CLUSTER_ACTION, ResourceType.CLUSTER) or (
        request.client_id != "stranger"
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), authorizer=deny_strangers) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningNode) -> RawClient:
    return running.client


def cores(running: RunningNode) -> dict[int, Any]:
    return {partition: shard.core for partition, shard in running.node.share_state.shards.items()}


def kept(running: RunningNode) -> dict[Key, Any]:
    return {key: each for core in cores(running).values() for key, each in core.kept.items()}


def test_partitions_of_a_request_go_to_their_own_coordinators(running: RunningNode, client: RawClient) -> None:
    topic = client.topic(20)
    partitions = range(20)
    assert codes(client.ask(initialize(topic.topic_id, partitions, start=5), 0)) == dict.fromkeys(partitions, 0)
    answer = client.ask(write(topic.topic_id, (5, 9, 2, 1), partitions=partitions, start=5, count=5), 1)
    assert [each.partition for each in answer.results[0].partitions] == [*partitions]
    homes = {home for home, core in cores(running).items() if any(key.topic_id == topic.topic_id for key in core.kept)}
    assert len(homes) > 1
    found = results(client.ask(summarize(topic.topic_id, [*partitions, 20]), 1))
    assert {(found[each].start_offset, found[each].delivery_complete_count) for each in partitions} == {(5, 5)}
    assert found[20].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(client.ask(delete(topic.topic_id, partitions), 0)) == dict.fromkeys(partitions, 0)
    assert set(codes(client.ask(read(topic.topic_id, partitions), 0)).values()) == {ErrorCode.INVALID_REQUEST}


def test_several_topics_in_the_order_of_the_request(client: RawClient) -> None:
    first, second = client.topic(3), client.topic(3)
    both = (
        *initialize(second.topic_id, (2, 0)).topics,
        *initialize(UNKNOWN_ID).topics,
        *initialize(first.topic_id, (1,)).topics,
    )
    answer = client.ask(type(initialize(UNKNOWN_ID))("g", both), 0)
    assert [(each.topic_id, [one.partition for one in each.partitions]) for each in answer.results] == [
        (second.topic_id, [2, 0]),
        (UNKNOWN_ID, [0]),
        (first.topic_id, [1]),
    ]
    assert [[one.error_code for one in each.partitions] for each in answer.results] == [[0, 0], [3], [0]]


@pytest.mark.parametrize(("make", "version"), ALL)
def test_only_brokers_may_ask(client: RawClient, make: Any, version: int) -> None:
    topic = client.topic(2)
    answer = client.connect("stranger").ask(make(topic.topic_id, partitions=(0, 1)), version)
    assert codes(answer) == dict.fromkeys((0, 1), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert all(each.error_message for each in results(answer).values())


@pytest.mark.parametrize(("make", "version"), ALL)
@pytest.mark.parametrize("group", ["", "g"])
def test_nothing_to_do(client: RawClient, make: Any, version: int, group: str) -> None:
    request = make(client.topic().topic_id, group=group) if not group else type(make(UNKNOWN_ID))(group)
    assert client.ask(request, version).results == ()


@pytest.mark.parametrize(("make", "low", "high"), [(write, 0, 1), (summarize, 0, 1)])
def test_versions(client: RawClient, make: Any, low: int, high: int) -> None:
    topic = client.topic()
    begin(client, topic.topic_id, start=3)
    for version in range(low, high + 1):
        assert codes(client.ask(make(topic.topic_id), version)) == {0: 0}


def test_epochs_fence_over_the_network(client: RawClient) -> None:
    topic = client.topic(2)
    topic_id = topic.topic_id
    begin(client, topic_id, epoch=5)
    assert codes(client.ask(initialize(topic_id, epoch=4), 0)) == {0: ErrorCode.FENCED_STATE_EPOCH}
    assert codes(client.ask(read(topic_id, leader=3), 0)) == {0: 0}
    assert codes(client.ask(read(topic_id, leader=2), 0)) == {0: ErrorCode.FENCED_LEADER_EPOCH}
    assert codes(client.ask(write(topic_id, partitions=(1,)), 1)) == {1: ErrorCode.INVALID_REQUEST}
    assert codes(client.ask(delete(topic_id, (1,)), 0)) == {1: 0}
    unknown = results(client.ask(summarize(topic_id, (1,)), 1))[1]
    assert (unknown.error_code, unknown.state_epoch, unknown.leader_epoch) == (0, 0, 0)
    assert (unknown.start_offset, unknown.delivery_complete_count) == (-1, -1)


def test_the_topic_is_made_as_kafka_makes_it(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        client = running.client
        topic = client.topic()
        assert codes(client.ask(initialize(topic.topic_id), 0)) == {0: 0}
        made = running.node.image.topics_by_name[STATE_TOPIC]
        assert len(made.partitions) == 50
        asked = DescribeConfigsRequest.DescribeConfigsResource(2, STATE_TOPIC)
        (answer,) = client.ask(DescribeConfigsRequest((asked,)), 4).results
        own = {each.name: each.value for each in answer.configs if each.config_source == 1}
        assert own == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "2",
            "retention.ms": "-1",
            "segment.bytes": "104857600",
        }


def test_a_topic_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_node(tmp_path) as running:
        topic = running.client.topic()
        monkeypatch.setattr(
            running.node.internal_topics, "ensure", lambda topic, done: done(ErrorCode.INVALID_REPLICATION_FACTOR)
        )
        answer = running.client.ask(read(topic.topic_id, (0,)), 0)
        assert codes(answer) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}


SMALL: dict[str, Any] = {
    "share_coordinator_state_topic_num_partitions": 1,
    "share_coordinator_state_topic_prune_interval_ms": 60_000,
    "share_coordinator_cold_partition_snapshot_interval_ms": 60_000,
}


def log_of_state(running: RunningNode) -> Any:
    replica = running.node.replicas.get(STATE_TOPIC, 0)
    assert replica is not None
    return replica.log


def accept(client: RawClient, topic: Topic, count: int, first: int = 0) -> None:
    for offset in range(first, first + count):
        answer = client.ask(write(topic.topic_id, (offset, offset, 2, 1), start=offset, count=1), 1)
        assert codes(answer) == {0: 0}


def test_pruning_runs_by_itself_and_a_new_start_knows_the_same(tmp_path: Path) -> None:
    """What is left after pruning tells the same."""
    with running_node(tmp_path, ManualClock(), **SMALL) as running:
        topic = running.client.topic()
        running.client.ask(initialize(topic.topic_id, start=0), 0)
        accept(running.client, topic, 1200)
        assert log_of_state(running).log_start_offset == 0
        running.advance(59_999)
        assert log_of_state(running).log_start_offset == 0
        running.advance(1)
        assert log_of_state(running).log_start_offset == 1002
        before = kept(running)
    with running_node(tmp_path, ManualClock(), **SMALL) as running:
        assert log_of_state(running).log_start_offset == 1002
        assert kept(running) == before
        # A fresh snapshot came with pruning, but does not count: the next is due 500 updates after the one before it.
        accept(running.client, topic, 302, 1200)
        assert {each.snapshot_epoch for each in kept(running).values()} == {3}
        accept(running.client, topic, 1, 1502)
        assert {each.snapshot_epoch for each in kept(running).values()} == {4}


def test_a_cold_snapshot_lets_pruning_move_on(tmp_path: Path) -> None:
    with running_node(
        tmp_path, ManualClock(), **SMALL, share_coordinator_snapshot_update_records_per_snapshot=0
    ) as running:
        quiet, busy = running.client.topic(), running.client.topic()
        for topic in (quiet, busy):
            running.client.ask(initialize(topic.topic_id, start=0), 0)
        accept(running.client, quiet, 1)
        for turn in range(3):
            accept(running.client, busy, 10, 10 * turn)
            running.advance(60_000)
        assert log_of_state(running).log_start_offset > 20
        by_topic = {key.topic_id: each for key, each in kept(running).items()}
        cold = by_topic[quiet.topic_id]
        assert cold.write_timestamp > cold.create_timestamp
        assert cold.batches == ((0, 0, 2, 1),)


def test_a_deleted_topic_takes_its_state_along(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        client = running.client
        gone, stays = client.topic(30), client.topic()
        client.ask(initialize(gone.topic_id, range(30)), 0)
        client.ask(initialize(stays.topic_id), 0)
        named = DeleteTopicsRequest.DeleteTopicState(gone.name)
        (answer,) = client.ask(DeleteTopicsRequest(topics=(named,), timeout_ms=5_000), 6).responses
        assert answer.error_code == 0
        assert codes(client.ask(summarize(stays.topic_id), 1)) == {0: 0}
        assert {key.topic_id for key in kept(running)} == {stays.topic_id}


def test_state_survives_a_restart(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        topic = running.client.topic(8)
        running.client.ask(initialize(topic.topic_id, range(8), start=0), 0)
        ranges = [(0, 3, 2, 1), (5, 9, 0, 2), (12, 12, 4, 1)]
        running.client.ask(write(topic.topic_id, *ranges, partitions=range(8), count=5), 1)
        before = kept(running)
    with running_node(tmp_path) as running:
        assert kept(running) == before
        found = results(running.client.ask(read(topic.topic_id, (3,)), 0))[3]
        assert [
            (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in found.state_batches
        ] == ranges
