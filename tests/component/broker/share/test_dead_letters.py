"""Dead-letter queues on a node with share.version 2: what is written where, and what happens if it cannot be."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.share.dead_letters import DeadLetterQueues
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types import CreateTopicsRequest, MetadataRequest
from simulation.virtual_replica import read_log
from tests.component.broker.feature_requests import BROKER, GROUP, set_config, update
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch, batches, running_node
from tests.component.broker.share.share_members import Member, configure, initialize, kept, new_group

ACCEPT, RELEASE, REJECT = [1], [2], [3]
ARCHIVING, ARCHIVED = 3, 4
LOCK_MS = 30_000
STATE_TOPIC = "__share_group_state"
SETTINGS: dict[str, Any] = {
    "unstable_feature_versions_enable": "true",
    "share_coordinator_state_topic_num_partitions": 1,
}
HEADERS = ["topic", "partition", "offset", "group", "delivery.count", "message"]
_serial = count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), ManualClock(), **SETTINGS) as running:
        assert update(running.client, "share.version", 2).error_code == 0
        yield running


@pytest.fixture(scope="module")
def client(running: RunningNode) -> RawClient:
    return running.client


def new_queue(client: RawClient, partitions: int = 1, prefix: str = "dlq.", **configs: object) -> Topic:
    """A topic that lets share groups write to it, unless it is told otherwise."""
    kind = CreateTopicsRequest
    name = f"{prefix}q{next(_serial)}"
    settings = {"errors.deadletterqueue.group.enable": "true", "retention.ms": "-1"}
    settings |= {key.replace("_", "."): str(value) for key, value in configs.items()}
    given = tuple(kind.CreatableTopicConfig(*each) for each in settings.items())
    (made,) = client.ask(kind((kind.CreatableTopic(name, partitions, 1, configs=given),), 5_000), 7).topics
    assert made.error_code == 0, made
    return Topic(name, made.topic_id)


def begin(client: RawClient, queue: str, *, partition: int = 0, size: int = 5, **group_settings: object) -> Member:
    """A member of a new group with a queue, and records to take."""
    topic, group = client.topic(partition + 1), new_group()
    assert set_config(client, GROUP, group, "errors.deadletterqueue.topic.name", queue) == 0
    if group_settings:
        configure(client, group, **group_settings)
    values = [b"v%d" % number for number in range(size)]
    answer = client.produce(
        topic, batch(*values, keys=[b"k%d" % number for number in range(size)]), partition=partition
    )
    assert answer.error_code == 0
    initialize(client, group, topic, partition)
    return Member(client, group, "m1", topic, partition)


def letters(client: RawClient, queue: Topic, partition: int = 0) -> list[Any]:
    """The records of a queue."""
    return [record for one in batches(client.fetch(queue, partition=partition)) for record in one.records()]


def told(letter: Any) -> dict[str, str]:
    return {name.removeprefix("__dlq.errors."): bytes(value).decode() for name, value in letter.headers}


def states(running: RunningNode, group: str) -> list[tuple[int, int, int]]:
    """First offset, last offset and state of all that was written down for a group, in order."""
    replica = running.node.replicas.get(STATE_TOPIC, 0)
    assert replica is not None
    records: list[KeyedRecord] = []
    running.change(lambda: records.extend(read_log(replica.log)))
    return [
        (each.first_offset, each.last_offset, each.delivery_state)
        for keyed in records
        if keyed.key.group_id == group and keyed.value is not None
        for each in keyed.value.state_batches
    ]


def start_of(member: Member) -> int:
    """The start that is kept: all before it is finished."""
    return kept(member.client, member.group, member.topic)[0]


def test_a_rejected_record_becomes_a_letter(running: RunningNode, client: RawClient) -> None:
    queue = new_queue(client, 2)
    member = begin(client, queue.name, partition=3)
    assert member.take() == [(0, 4, 1)]
    assert member.acknowledge((1, 2, REJECT), (3, 3, ACCEPT), partition=3) == 0
    found = letters(client, queue, partition=1)
    assert letters(client, queue, partition=0) == []
    assert [(record.key, record.value) for record in found] == [(None, None)] * 2
    assert [list(told(record)) for record in found] == [HEADERS] * 2
    assert [record.timestamp for record in found] == [running.node.clock.wall_ms()] * 2
    assert told(found[1]) == {
        "topic": member.topic.name,
        "partition": "3",
        "offset": "2",
        "group": member.group,
        "delivery.count": "1",
        "message": "The record was rejected by a consumer.",
    }
    assert states(running, member.group) == [(1, 2, ARCHIVING), (3, 3, 2), (1, 2, ARCHIVED)]


def test_a_letter_with_a_copy_of_the_record(client: RawClient) -> None:
    queue = new_queue(client)
    member = begin(client, queue.name)
    assert set_config(client, GROUP, member.group, "errors.deadletterqueue.copy.record.enable", "true") == 0
    member.take()
    assert member.acknowledge((1, 1, REJECT), (3, 4, REJECT)) == 0
    assert [(record.key, record.value) for record in letters(client, queue)] == [
        (b"k1", b"v1"),
        (b"k3", b"v3"),
        (b"k4", b"v4"),
    ]


@pytest.mark.parametrize("way", ["release", "session", "lock"])
def test_a_record_delivered_too_often_becomes_a_letter(running: RunningNode, client: RawClient, way: str) -> None:
    queue = new_queue(client)
    member = begin(client, queue.name, size=1, delivery_count_limit=2)
    assert member.take() == [(0, 0, 1)]
    assert member.acknowledge((0, 0, RELEASE)) == 0
    assert letters(client, queue) == []
    assert member.take() == [(0, 0, 2)]
    if way == "release":
        assert member.acknowledge((0, 0, RELEASE)) == 0
    elif way == "session":
        member.close()
    else:
        running.advance(LOCK_MS)
    running.until(lambda: bool(letters(client, queue)))
    (letter,) = letters(client, queue)
    assert (told(letter)["delivery.count"], told(letter)["offset"]) == ("2", "0")
    assert told(letter)["message"] == "The record was delivered as often as the group allows."
    assert states(running, member.group)[-1] == (0, 0, ARCHIVING)
    running.until(lambda: start_of(member) == 1)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "no dead letters" in each.getMessage()]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda client: "dlq.missing", "the topic dlq.missing does not exist"),
        (
            lambda client: new_queue(client, errors_deadletterqueue_group_enable="false").name,
            "is not a dead-letter queue",
        ),
        (lambda client: new_queue(client, prefix="other.").name, "is not a valid dead-letter queue"),
        (lambda client: "__dlq", "is not a valid dead-letter queue"),
    ],
)
def test_without_a_usable_queue_the_records_are_lost_and_told(
    running: RunningNode, client: RawClient, caplog: pytest.LogCaptureFixture, make: Any, reason: str
) -> None:
    member = begin(client, make(client))
    member.take()
    with caplog.at_level(logging.ERROR):
        assert member.acknowledge((0, 1, REJECT), (2, 4, ACCEPT)) == 0
        running.until(lambda: start_of(member) == 5)
    (line,) = lines(caplog)
    assert reason in line
    assert f"share group {member.group}" in line
    assert "offsets 0 to 1" in line
    assert f'ottla_share_dead_letter_lost_records_total{{group="{member.group}"}} 2' in running.node.metrics.page()
    client.produce(member.topic, batch(b"next"))
    assert member.take() == [(5, 5, 1)]


def test_a_queue_is_made_if_that_is_allowed(running: RunningNode, client: RawClient) -> None:
    assert set_config(client, BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "true") == 0
    try:
        name = f"dlq.made{next(_serial)}"
        member = begin(client, name)
        member.take()
        assert member.acknowledge((0, 0, REJECT)) == 0
        running.until(lambda: topic_of(client, name) is not None)
        queue = topic_of(client, name)
        assert queue is not None
        running.until(lambda: bool(letters(client, queue)))
    finally:
        assert set_config(client, BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", None) == 0


def topic_of(client: RawClient, name: str) -> Topic | None:
    answer = client.ask(MetadataRequest((MetadataRequest.MetadataRequestTopic(name=name),)), 12).topics[0]
    return None if answer.error_code else Topic(name, answer.topic_id)


def test_any_prefix_if_none_is_set(running: RunningNode, client: RawClient) -> None:
    assert set_config(client, BROKER, "", "errors.deadletterqueue.topic.name.prefix", "") == 0
    try:
        queue = new_queue(client, prefix="graveyard-")
        member = begin(client, queue.name)
        member.take()
        member.acknowledge((0, 0, REJECT))
        running.until(lambda: bool(letters(client, queue)))
    finally:
        assert set_config(client, BROKER, "", "errors.deadletterqueue.topic.name.prefix", None) == 0


def test_letters_are_cut_to_what_the_queue_takes(client: RawClient) -> None:
    queue = new_queue(client, max_message_bytes=1_200)
    member = begin(client, queue.name, size=1)
    assert set_config(client, GROUP, member.group, "errors.deadletterqueue.copy.record.enable", "true") == 0
    values = [b"s" * 300, b"L" * 2_000, b"s" * 300, b"s" * 300]
    assert client.produce(member.topic, batch(*values)).error_code == 0
    member.take()
    assert member.acknowledge((1, 4, REJECT)) == 0
    found = batches(client.fetch(queue))
    assert len(found) > 1
    assert all(one.size_bytes <= 1_200 for one in found)
    assert [record.value for one in found for record in one.records()] == [values[0], None, values[2], values[3]]


def reject_one(running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch) -> tuple[Topic, Member]:
    """Reject a record while nobody leads the partitions of the queue."""
    queue = new_queue(client)
    member = begin(client, queue.name)
    member.take()
    leader = running.node.replicas.leader

    def fails(topic: str, partition: int) -> Any:
        if topic == queue.name:
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return leader(topic, partition)

    monkeypatch.setattr(running.node.replicas, "leader", fails)
    assert member.acknowledge((0, 0, REJECT)) == 0
    return queue, member


def test_what_cannot_be_written_is_tried_again(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue, member = reject_one(running, client, monkeypatch)
    for pause_ms in (1_000, 2_000):
        running.advance(pause_ms)
    assert states(running, member.group) == [(0, 0, ARCHIVING)]
    monkeypatch.undo()
    running.advance(4_000)
    running.until(lambda: bool(letters(client, queue)))
    running.until(lambda: start_of(member) == 1)
    assert lines(caplog) == []
    page = running.node.metrics.page()
    assert f'ottla_share_dead_letter_records_total{{group="{member.group}"}} 1' in page
    assert f'ottla_share_dead_letter_failed_produce_requests_total{{group="{member.group}"}} 3' in page


def test_a_queue_that_never_works_does_not_stop_the_group(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, member = reject_one(running, client, monkeypatch)
    for pause_ms in (1_000, 2_000, 4_000, 8_000):
        assert states(running, member.group) == [(0, 0, ARCHIVING)]
        running.advance(pause_ms)
    running.until(lambda: start_of(member) == 1)
    assert len(lines(caplog)) == 1


def test_killed_with_letters_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningNode(tmp_path, ManualClock(), **SETTINGS)
    running.start()
    client = running.client
    assert update(client, "share.version", 2).error_code == 0
    queue = new_queue(client)
    member = begin(client, queue.name)
    member.take()
    with monkeypatch.context() as patched:
        patched.setattr(DeadLetterQueues, "send", lambda *arguments: None)  # the kill comes first
        assert member.acknowledge((0, 1, REJECT), (2, 2, ACCEPT)) == 0
        running.kill()
    client.close_all()
    with running_node(tmp_path, ManualClock(), **SETTINGS) as running:
        client = running.client
        assert kept(client, member.group, member.topic)[1] == [(0, 1, ARCHIVING, 1), (2, 2, 2, 1)]
        again = Member(client, member.group, "m1", member.topic)
        assert again.take(max_wait_ms=60_000) == [(3, 4, 1)]
        running.until(lambda: len(letters(client, queue)) == 2)
        running.until(lambda: kept(client, member.group, member.topic)[0] == 3)


def test_without_share_version_2_nothing_is_a_letter(running: RunningNode, client: RawClient) -> None:
    queue = new_queue(client)
    member = begin(client, queue.name)
    member.take()
    assert update(client, "share.version", 1, 2).error_code == 0
    try:
        assert member.acknowledge((0, 0, REJECT)) == 0
        assert letters(client, queue) == []
        assert states(running, member.group) == [(0, 0, ARCHIVED)]
    finally:
        assert update(client, "share.version", 2).error_code == 0
