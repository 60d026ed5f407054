"""ShareGroupHeartbeat and ShareGroupDescribe over a real node, and what other requests make of share groups."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    ListGroupsRequest,
    ShareGroupHeartbeatResponse,
)
from tests.component.broker.raw_client import RawClient, RunningNode, running_node
from tests.component.broker.share.group_requests import (
    LEAVE,
    WAIT_MS,
    alter,
    beat,
    describe,
    forget,
    join,
    offsets,
    partitions,
    set_config,
    set_share_version,
    starts_and_lags,
)
from tests.component.broker.share.share_members import Member, acquired, new_group, produce
from tests.interop.groups.brokers import GROUP_SETTINGS
from tests.interop.groups_consumer.record import recorded
from tests.interop.groups_share.record import CLIENT_ID, GOLDEN, SETTINGS, listen

BEATS_MAX = 1_000

Right = tuple[Operation, ResourceType, str]


def test_a_conversation_goes_as_with_kafka(tmp_path: Path):
    """Every answer and every record, beside what was recorded from Apache Kafka 4.3.1."""
    settings = GROUP_SETTINGS | SETTINGS | {"offsets.topic.num.partitions": 1}
    with running_node(tmp_path, ManualClock(), **settings) as node:
        # An answer may be on its way before the loop's turn ends, and what it decided is written.
        heard = listen(node.client.connect(CLIENT_ID), tmp_path, lambda is_behind: node.run_turns())
    for said, expected in zip(heard, recorded(GOLDEN), strict=True):
        assert said == expected


def test_the_first_answer_has_the_assignment(running: RunningNode, client: RawClient):
    """Even the very first, for which the topic of share state must be made."""
    topic, group = client.topic(partitions=3), new_group()
    answer = client.ask(join(group, "A", topic.name), 1)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("A", 3, 5_000)
    assert partitions(answer) == {topic.topic_id: (0, 1, 2)}
    steady = ShareGroupHeartbeatResponse(member_id="A", member_epoch=3, heartbeat_interval_ms=5_000)
    for _ in range(3):
        assert client.ask(beat(group, "A", 3), 1) == steady


def test_the_first_answer_does_not_wait_for_ever(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch
):
    """Share coordinators that do not answer at once: then the partitions come with a later heartbeat."""
    topic, group, asked = client.topic(), new_group(), list[tuple[Any, Any]]()
    persister = running.node.share.persister
    ask = persister.ask
    monkeypatch.setattr(persister, "ask", lambda *each: asked.append(each))
    connection = client.connect()
    number = connection.send(join(group, "A", topic.name), 1)
    running.until(lambda: asked)
    running.advance(1_000)
    assert connection.receive(76, 1, number).member_epoch == 2
    running.change(lambda: ask(*asked[0]))
    answer = connection.ask(beat(group, "A", 2), 1)
    assert (answer.member_epoch, partitions(answer)) == (3, {topic.topic_id: (0,)})


BAD_REQUESTS = {
    "no names": (beat("g", "A", 0), True),
    "empty names": (join("g", "A"), True),
    "empty rack": (join("g", "A", "t", rack_id=""), True),
    "no group": (join("", "A", "t"), True),
    "epoch -2": (beat("g", "A", -2), True),
    "no member": (join("g", "", "t"), False),
    "member of 37 characters": (join("g", "A" * 37, "t"), False),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_requests_that_make_no_sense(client: RawClient, name: str):
    request, has_message = BAD_REQUESTS[name]
    answer = client.ask(request, 1)
    assert (answer.error_message is not None) == has_message
    assert answer == ShareGroupHeartbeatResponse(
        error_code=ErrorCode.INVALID_REQUEST, error_message=answer.error_message
    )


def test_a_member_id_may_have_36_characters_of_any_kind(client: RawClient):
    topic = client.topic()
    for member in ("A" * 36, "+/==", "ü😀"):
        assert client.ask(join(new_group(), member, topic.name), 1).member_id == member


def test_what_makes_no_sense_is_told_by_any_broker(tmp_path: Path):
    """Before the coordinator is looked for; who is right is sent to look elsewhere."""
    with running_node(tmp_path, ManualClock(), offsets_topic_num_partitions=1) as node:
        topic = node.client.topic()
        node.client.ask(join("g", "A", topic.name), 1)
        node.change(lambda: node.node.groups.shards.clear())
        assert node.client.ask(beat("g", "A", 3), 1).error_code == ErrorCode.NOT_COORDINATOR
        assert node.client.ask(beat("g", "A", -2), 1).error_code == ErrorCode.INVALID_REQUEST
        node.change(lambda: node.node.groups.loading.add(0))
        assert node.client.ask(beat("g", "A", 3), 1).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert node.client.ask(join("g", "A"), 1).error_code == ErrorCode.INVALID_REQUEST


def test_steady_heartbeats_keep_the_session_and_silence_ends_it(running: RunningNode, client: RawClient):
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    for _ in range(4):
        running.advance(30_000)
        assert client.ask(beat(group, "A", 3), 1).error_code == 0
    running.advance(45_000)
    assert client.ask(beat(group, "A", 3), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert describe(client, group)[0].group_state == "Empty"


def test_the_session_of_a_member_ends_but_not_its_locks(running: RunningNode, client: RawClient):
    topic, group = client.topic(), new_group()
    set_config(client, group, "share.auto.offset.reset", "earliest")
    set_config(client, group, "share.record.lock.duration.ms", "60000")
    client.ask(join(group, "A", topic.name), 1)
    produce(client, topic, 5)
    member = Member(client, group, "A", topic)
    assert member.take(max_wait_ms=WAIT_MS) == [(0, 4, 1)]
    running.advance(45_000)
    assert client.ask(beat(group, "A", 3), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.acknowledge((0, 4, [1])) == 0


def test_partitions_are_added_to_a_topic_that_is_read(running: RunningNode, client: RawClient):
    """What was written to them before the group took notice is not skipped, though it reads from the latest on."""
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    produce(client, topic, 2)
    kind = CreatePartitionsRequest
    grown = client.ask(kind((kind.CreatePartitionsTopic(topic.name, 2, None),), 30_000), 3)
    assert grown.results[0].error_code == 0
    produce(client, topic, 3, partition=1)
    running.advance(1_000)
    answer = client.ask(beat(group, "A", 3), 1)
    assert partitions(answer) == {topic.topic_id: (0, 1)}
    assert acquired(Member(client, group, "A", topic, 0, 1).fetch(max_wait_ms=WAIT_MS)) == [(0, 2, 1)]


def test_a_topic_is_deleted(running: RunningNode, client: RawClient):
    gone, kept, group = client.topic(), client.topic(), new_group()
    client.ask(join(group, "A", gone.name, kept.name), 1)
    kind = DeleteTopicsRequest
    client.ask(kind((kind.DeleteTopicState(gone.name),), timeout_ms=30_000), 6)
    running.advance(1_000)
    assert partitions(client.ask(beat(group, "A", 3), 1)) == {kept.topic_id: (0,)}
    assert list(starts_and_lags(offsets(client, group))) == [(kept.name, 0)]


def test_a_group_outlives_its_node(tmp_path: Path):
    with running_node(tmp_path, ManualClock()) as node:
        topic = node.client.topic(partitions=2)
        node.client.ask(join("g", "A", topic.name), 1)
    with running_node(tmp_path, ManualClock()) as node:
        assert node.client.ask(beat("g", "A", 3), 1) == ShareGroupHeartbeatResponse(
            member_id="A", member_epoch=3, heartbeat_interval_ms=5_000
        )
        (row,) = describe(node.client, "g")
        assert row.members[0].assignment.topic_partitions[0].partitions == (0, 1)


def test_describe(client: RawClient):
    topic, group = client.topic(partitions=2), new_group()
    client.ask(join(group, "A", topic.name, "nowhere", rack_id="r"), 1)
    unknown, empty, row = describe(client, "nowhere", "", group, include_authorized_operations=True)
    assert (unknown.error_code, unknown.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "nowhere")
    assert unknown.error_message is not None
    assert (empty.error_code, empty.error_message) == (ErrorCode.INVALID_GROUP_ID, None)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == ("Stable", 3, 3, "simple")
    assert row.authorized_operations > 0
    assert describe(client, group)[0].authorized_operations == -(2**31)
    (member,) = row.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("A", "r", 3)
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert member.subscribed_topic_names == tuple(sorted((topic.name, "nowhere")))
    (entry,) = member.assignment.topic_partitions
    assert (entry.topic_id, entry.topic_name, entry.partitions) == (topic.topic_id, topic.name, (0, 1))


def test_a_group_is_deleted(client: RawClient):
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    alone = DeleteGroupsRequest((group,))
    assert client.ask(alone, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    client.ask(beat(group, "A", LEAVE), 1)
    alter(client, group, topic, 7)
    assert client.ask(alone, 2).results[0].error_code == 0
    assert describe(client, group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert client.ask(alone, 2).results[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert starts_and_lags(offsets(client, group, {topic.name: (0,)})) == {(topic.name, 0): (-1, -1)}


def test_a_subscription_that_no_batch_can_hold(running: RunningNode, client: RawClient):
    """Ten thousand names as long as names can be: the answer is clear, and nothing has happened."""
    names = [f"{number:05}".ljust(249, "x") for number in range(10_000)]
    topic, group = client.topic(), new_group()
    refused = client.ask(join(group, "A", topic.name, *names), 1)
    assert (refused.error_code, refused.member_epoch) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert describe(client, group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    answer = client.ask(join(group, "A", topic.name, *(name[:20] for name in names)), 1)
    for _ in range(BEATS_MAX):  # so large a target is computed beside the requests
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
        running.advance(1)
        time.sleep(0.01)
        answer = client.ask(beat(group, "A", answer.member_epoch), 1)
    assert partitions(answer) == {topic.topic_id: (0,)}


def test_an_assignment_that_needs_several_batches(tmp_path: Path):
    with running_node(tmp_path, ManualClock(), message_max_bytes=6_000) as node:
        topics = [node.client.topic().name for _ in range(60)]
        answer = node.client.ask(join("wide", "A", *topics), 1)
        assert (answer.error_code, len(partitions(answer))) == (0, 60)
    with running_node(tmp_path, ManualClock(), message_max_bytes=6_000) as node:
        assert node.client.ask(beat("wide", "A", 3), 1).member_epoch == 3


# --- settings ---------------------------------------------------------------------------------------------------------

BOUNDS = {
    "share.session.timeout.ms": (45_000, 60_000),
    "share.heartbeat.interval.ms": (5_000, 15_000),
    "share.record.lock.duration.ms": (15_000, 60_000),
    "share.delivery.count.limit": (2, 10),
    "share.partition.max.record.locks": (100, 4_000),
    "share.assignment.interval.ms": (0, 15_000),
}
WORDS = {
    "share.auto.offset.reset": (
        ["earliest", "latest", "by_duration:PT1H", "by_duration:P3DT4H5M6.7S", "by_duration:PT0S"],
        ["none", "Earliest", "", "by_duration:", "by_duration:PT-1H", "by_duration:-PT1H", "by_duration:1h"],
    ),
    "share.isolation.level": (["read_committed", "read_uncommitted"], ["READ_COMMITTED", "", "committed"]),
    "share.renew.acknowledge.enable": (["true", "false"], ["yes", "1", ""]),
    "share.no.such.setting": ([], ["1"]),
    "errors.deadletterqueue.no.such.setting": ([], ["1"]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_numeric_settings_at_and_beyond_their_bounds(client: RawClient, name: str):
    group, (low, high) = new_group(), BOUNDS[name]
    assert [set_config(client, group, name, str(value)) for value in (low, high)] == [0, 0]
    for value in (str(low - 1), str(high + 1), "x", "", "1.5"):
        assert set_config(client, group, name, value) == ErrorCode.INVALID_CONFIG, value


@pytest.mark.parametrize("name", WORDS)
def test_settings_that_are_words(client: RawClient, name: str):
    group, (good, bad) = new_group(), WORDS[name]
    assert [set_config(client, group, name, value) for value in good] == [0] * len(good)
    for value in bad:
        assert set_config(client, group, name, value) == ErrorCode.INVALID_CONFIG, value


def test_a_session_outlasts_heartbeats(tmp_path: Path):
    bounds = {"group_share_min_session_timeout_ms": 1_000, "group_share_max_heartbeat_interval_ms": 60_000}
    with running_node(tmp_path, ManualClock(), **bounds) as node:
        assert set_config(node.client, "g", "share.session.timeout.ms", "5001") == 0
        assert set_config(node.client, "g", "share.session.timeout.ms", "5000") == ErrorCode.INVALID_CONFIG
        assert set_config(node.client, "h", "share.heartbeat.interval.ms", "44999") == 0
        assert set_config(node.client, "h", "share.heartbeat.interval.ms", "45000") == ErrorCode.INVALID_CONFIG


def test_a_groups_own_settings_are_told_at_once(client: RawClient):
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    client.ask(beat(group, "A", 3), 1)
    assert set_config(client, group, "share.heartbeat.interval.ms", "7000") == 0
    assert client.ask(beat(group, "A", 3), 1).heartbeat_interval_ms == 7_000


# --- rights and switches ----------------------------------------------------------------------------------------------


class _Doorkeeper:
    """Lets everybody do everything but what is denied at the moment."""

    def __init__(self) -> None:
        self.denied: Right | None = None

    def __call__(self, request: Any, *right: Any) -> bool:
        return right != self.denied

    def check(self, operation: Operation, resource_type: ResourceType, name: str, ask: Any, code: ErrorCode) -> None:
        """Without this right, and only then, there is this error."""
        assert ask() == 0
        self.denied = (operation, resource_type, name)
        assert ask() == code
        self.denied = None


def test_rights_to_groups_and_topics(tmp_path: Path):
    doorkeeper = _Doorkeeper()
    check, topic_failed, group_failed = (
        doorkeeper.check,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    )
    with running_node(tmp_path, ManualClock(), authorizer=doorkeeper) as node:
        client = node.client
        topic = client.topic()

        def heartbeat() -> int:
            return int(client.ask(join("g", "A", topic.name), 1).error_code)

        def described() -> int:
            return int(describe(client, "g")[0].error_code)

        def named() -> int:
            group = offsets(client, "g", {topic.name: (0,)})
            return int(group.error_code or group.topics[0].partitions[0].error_code)

        def altered() -> int:
            answer = alter(client, "empty", topic, 0)
            return int(answer.error_code or answer.responses[0].partitions[0].error_code)

        def forgotten() -> int:
            assert altered() == 0
            answer = forget(client, "empty", topic.name)
            return int(answer.error_code or answer.responses[0].error_code)

        def deleted() -> int:
            client.ask(join("other", "A", "nowhere"), 1)
            client.ask(beat("other", "A", LEAVE), 1)
            return int(client.ask(DeleteGroupsRequest(("other",)), 2).results[0].error_code)

        check(Operation.READ, ResourceType.GROUP, "g", heartbeat, group_failed)
        check(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, heartbeat, topic_failed)
        check(Operation.DESCRIBE, ResourceType.GROUP, "g", described, group_failed)
        check(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, described, topic_failed)
        check(Operation.DESCRIBE, ResourceType.GROUP, "g", named, group_failed)
        check(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, named, topic_failed)
        check(Operation.READ, ResourceType.GROUP, "empty", altered, group_failed)
        check(Operation.READ, ResourceType.TOPIC, topic.name, altered, topic_failed)
        check(Operation.DELETE, ResourceType.GROUP, "empty", forgotten, group_failed)
        check(Operation.DELETE, ResourceType.GROUP, "other", deleted, group_failed)


def test_what_is_not_to_be_seen_is_not_shown(tmp_path: Path):
    denied: set[Right] = set()
    with running_node(tmp_path, ManualClock(), authorizer=lambda _, *right: right not in denied) as node:
        client = node.client
        one, two = client.topic(), client.topic()
        client.ask(join("g", "A", one.name, two.name), 1)
        denied.add((Operation.DESCRIBE, ResourceType.TOPIC, two.name))
        assert [topic.topic_name for topic in offsets(client, "g").topics] == [one.name]
        refused = offsets(client, "g", {two.name: (0, 1)}).topics[0]
        assert (refused.topic_id, {each.start_offset for each in refused.partitions}) == (bytes(16), {-1})
        assert describe(client, "g")[0].members == ()
        client.ask(beat("g", "A", LEAVE), 1)
        denied.add((Operation.READ, ResourceType.TOPIC, two.name))
        mixed = forget(client, "g", two.name, one.name).responses
        assert [each.error_code for each in mixed] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0]
        denied.add((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
        denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        client.ask(join("seen", "A", one.name), 1)
        assert [each.group_id for each in client.ask(ListGroupsRequest(), 5).groups] == ["seen"]


def test_share_groups_are_switched_off_and_on(tmp_path: Path):
    with running_node(tmp_path, ManualClock()) as node:
        client = node.client
        topic = client.topic()
        client.ask(join("g", "A", topic.name), 1)
        set_share_version(node, 0)
        off = ErrorCode.UNSUPPORTED_VERSION
        assert client.ask(beat("g", "A", 3), 1) == ShareGroupHeartbeatResponse(error_code=off)
        assert [each.error_code for each in describe(client, "g", "h")] == [off, off]
        assert (offsets(client, "g").error_code, offsets(client, "g", {}).error_code) == (off, off)
        assert alter(client, "h", topic, 0).error_code == off
        assert forget(client, "h", topic.name).error_code == off
        member = Member(client, "g", "A", topic)
        assert member.fetch().error_code == off
        assert member.acknowledge_all({0: [(0, 0, [1])]}).error_code == off
        set_share_version(node, 1)
        assert client.ask(beat("g", "A", 3), 1).member_epoch == 3
        assert starts_and_lags(offsets(client, "g"))
        assert Member(client, "g", "A", topic).fetch().error_code == 0
