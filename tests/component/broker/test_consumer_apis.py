"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over a real node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from tests.component.broker.raw_client import RunningNode, running_node
from tests.interop.groups_consumer.record import CLIENT_ID, SETTINGS, listen, recorded

GROUP_RESOURCE = 32
SET = 0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("consumer"), ManualClock()) as node:
        yield node


def join(group: str, member: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": topics, "topic_partitions": ()} | fields
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, **given)


def beat(group: str, member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)


def describe(running: RunningNode, *groups: str, version: int = 1, **fields: Any) -> Any:
    return running.client.ask(ConsumerGroupDescribeRequest(groups, **fields), version).groups


def test_a_conversation_goes_as_with_kafka(tmp_path: Path):
    """Every answer and every record, beside what was recorded from Apache Kafka 4.3.1."""
    settings = SETTINGS | {"offsets.topic.num.partitions": 1, "group.consumer.min.heartbeat.interval.ms": 500}
    with running_node(tmp_path, ManualClock(), **settings, group_consumer_heartbeat_interval_ms=500) as node:
        heard = listen(node.client.connect(CLIENT_ID), tmp_path, lambda is_resolving: node.advance(10))
    for said, expected in zip(heard, recorded(), strict=True):
        assert said == expected


def test_a_member_joins_lives_and_leaves(running: RunningNode):
    topic = running.client.topic(partitions=3)
    answer = running.client.ask(join("g1", "A", topic.name), 1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "A", 2)
    assert [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions] == [
        (topic.topic_id, (0, 1, 2))
    ]
    for _ in range(3):
        steady = running.client.ask(beat("g1", "A", 2), 1)
        assert steady == ConsumerGroupHeartbeatResponse(member_id="A", member_epoch=2, heartbeat_interval_ms=5_000)
    assert running.client.ask(beat("g1", "A", -1), 1).member_epoch == -1
    (row,) = describe(running, "g1")
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.members) == ("Empty", 3, 2, ())


def test_steady_heartbeats_keep_the_session_and_silence_ends_it(running: RunningNode):
    topic = running.client.topic()
    running.client.ask(join("g2", "A", topic.name), 1)
    for _ in range(4):
        running.advance(30_000)
        assert running.client.ask(beat("g2", "A", 2), 1).error_code == 0
    running.advance(45_001)
    assert running.client.ask(beat("g2", "A", 2), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_groups_own_settings_are_told_at_once(running: RunningNode):
    topic = running.client.topic()
    running.client.ask(join("g3", "A", topic.name), 1)
    running.client.ask(beat("g3", "A", 2), 1)
    change = IncrementalAlterConfigsRequest.AlterableConfig("consumer.heartbeat.interval.ms", SET, "7000")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(GROUP_RESOURCE, "g3", (change,))
    (result,) = running.client.ask(IncrementalAlterConfigsRequest((resource,)), 1).responses
    assert result.error_code == 0, result
    assert running.client.ask(beat("g3", "A", 2), 1).heartbeat_interval_ms == 7_000


@pytest.mark.parametrize("version", [0, 1])
def test_describe(running: RunningNode, version: int):
    topic = running.client.topic(partitions=2)
    group = f"d{version}"
    running.client.ask(join(group, "A", topic.name, instance_id="i", rack_id="r"), 1)
    unknown, empty, row = describe(running, "nowhere", "", group, version=version, include_authorized_operations=True)
    assert (unknown.error_code, unknown.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "nowhere")
    assert unknown.error_message is not None
    assert (empty.error_code, empty.error_message) == (ErrorCode.INVALID_GROUP_ID, None)
    assert (row.error_code, row.group_state, row.assignor_name) == (0, "Stable", "uniform")
    assert row.authorized_operations > 0
    (member,) = row.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("A", "i", "r", 2)
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert member.subscribed_topic_names == (topic.name,)
    for assignment in (member.assignment, member.target_assignment):
        (entry,) = assignment.topic_partitions
        assert (entry.topic_id, entry.topic_name, entry.partitions) == (topic.topic_id, topic.name, (0, 1))
    assert member.member_type == (1 if version else -1)


def test_other_requests_know_the_group_for_what_it_is(running: RunningNode):
    topic = running.client.topic()
    running.client.ask(join("g4", "A", topic.name), 1)
    listed = {each.group_id: each for each in running.client.ask(ListGroupsRequest(), 5).groups}
    assert (listed["g4"].group_type, listed["g4"].protocol_type, listed["g4"].group_state) == (
        "consumer",
        "consumer",
        "Stable",
    )
    (row,) = running.client.ask(DescribeGroupsRequest(("g4",)), 6).groups
    assert (row.error_code, row.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_a_group_outlives_its_node(tmp_path: Path):
    with running_node(tmp_path, ManualClock()) as node:
        topic = node.client.topic(partitions=2)
        node.client.ask(join("g", "A", topic.name), 1)
    with running_node(tmp_path, ManualClock()) as node:
        assert node.client.ask(beat("g", "A", 2), 1).member_epoch == 2
        (row,) = describe(node, "g")
        assert row.members[0].assignment.topic_partitions[0].partitions == (0, 1)


def test_rights(tmp_path: Path):
    denied: set[tuple[Operation, ResourceType, str]] = set()
    with running_node(tmp_path, ManualClock(), authorizer=lambda _, *right: right not in denied) as node:
        one, two = node.client.topic(), node.client.topic()
        assert node.client.ask(join("g", "A", one.name, two.name), 1).error_code == 0
        denied.add((Operation.DESCRIBE, ResourceType.TOPIC, two.name))
        refused = node.client.ask(join("g", "B", one.name, two.name), 1)
        assert (refused.error_code, refused.member_id) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        (row,) = describe(node, "g")
        assert (row.error_code, row.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
        assert node.client.ask(beat("g", "A", 2), 1).error_code == 0
        denied.add((Operation.READ, ResourceType.GROUP, "g"))
        assert node.client.ask(beat("g", "A", 2), 1).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        other, row = describe(node, "nowhere", "g")[::-1]
        assert (row.group_id, row.error_code) == ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert (other.group_id, other.error_code) == ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_subscription_that_no_batch_can_hold(running: RunningNode):
    """Ten thousand names as long as names can be: the answer is clear, and nothing has happened."""
    names = [f"{number:05}".ljust(249, "x") for number in range(10_000)]
    refused = running.client.ask(join("large", "A", *names), 1)
    assert (refused.error_code, refused.member_epoch) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert describe(running, "large")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    answer = running.client.ask(join("large", "A", *(name[:20] for name in names)), 1)
    assert (answer.error_code, answer.member_epoch) == (0, 1)  # its target is computed after the answer


def test_a_target_that_needs_several_batches(tmp_path: Path):
    with running_node(tmp_path, ManualClock(), message_max_bytes=3_000) as node:
        topics = [node.client.topic().name for _ in range(60)]
        answer = node.client.ask(join("wide", "A", *topics), 1)
        assert (answer.error_code, len(answer.assignment.topic_partitions)) == (0, 60)
    with running_node(tmp_path, ManualClock(), message_max_bytes=3_000) as node:
        assert node.client.ask(beat("wide", "A", 2), 1).member_epoch == 2


def test_a_pattern_that_cannot_be(running: RunningNode):
    bomb = join("bomb", "A", subscribed_topic_names=None, subscribed_topic_regex="((a{1000}){1000}){1000}")
    refused = running.client.ask(bomb, 1)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message
    assert describe(running, "bomb")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_switched_off(tmp_path: Path):
    with running_node(tmp_path, ManualClock(), group_coordinator_rebalance_protocols="classic") as node:
        assert node.client.ask(join("g", "A", "t"), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        (row,) = describe(node, "g")
        assert row.error_code == ErrorCode.UNSUPPORTED_VERSION
