"""The offsets of share groups, described, changed and deleted over a real node."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import DeleteGroupsRequest
from tests.component.broker.raw_client import RawClient, RunningNode
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
    starts_and_lags,
)
from tests.component.broker.share.share_members import Member, kept, new_group, produce, summary


def test_offsets_are_altered(client: RawClient):
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    produce(client, topic, 10)
    assert alter(client, group, topic, 4).error_code == ErrorCode.NON_EMPTY_GROUP
    client.ask(beat(group, "A", LEAVE), 1)
    answer = alter(client, group, topic, 4)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    assert starts_and_lags(offsets(client, group)) == {(topic.name, 0): (4, 6)}


def test_a_group_is_made_by_altering_offsets(client: RawClient):
    topic, group = client.topic(), new_group()
    assert alter(client, group, topic, 500).error_code == 0
    (row,) = describe(client, group)
    assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("Empty", 1, 1)
    assert starts_and_lags(offsets(client, group)) == {(topic.name, 0): (500, -500)}


def test_altered_offsets_count_at_once(running: RunningNode, client: RawClient):
    """Though a leader has the old ones in memory, for a member that left its group keeps its session."""
    topic, group = client.topic(), new_group()
    set_config(client, group, "share.auto.offset.reset", "earliest")
    client.ask(join(group, "A", topic.name), 1)
    produce(client, topic, 10)
    member = Member(client, group, "A", topic)
    assert member.take(max_wait_ms=WAIT_MS) == [(0, 9, 1)]
    assert member.acknowledge((0, 9, [1])) == 0
    client.ask(beat(group, "A", LEAVE), 1)
    alter(client, group, topic, 7)
    assert member.take(max_wait_ms=WAIT_MS) == [(7, 9, 1)]


def test_offsets_are_deleted(client: RawClient):
    topic, other, group = client.topic(), client.topic(), new_group()
    assert forget(client, group, topic.name).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert forget(client, "", topic.name).error_code == ErrorCode.INVALID_GROUP_ID
    client.ask(join(group, "A", topic.name), 1)
    assert forget(client, group, topic.name).error_code == ErrorCode.NON_EMPTY_GROUP
    client.ask(beat(group, "A", LEAVE), 1)
    done, unused, unknown = forget(client, group, topic.name, other.name, "nowhere").responses
    assert (done.topic_id, done.error_code) == (topic.topic_id, 0)
    assert (unused.error_code, unused.error_message) == (3, "There is no offset information to delete.")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert forget(client, group, topic.name).responses[0].error_message == "There is no offset information to delete."
    assert summary(client, group, topic) == (-1, -1)


def test_a_forgotten_topic_begins_anew(client: RawClient):
    topic, group = client.topic(), new_group()
    set_config(client, group, "share.auto.offset.reset", "earliest")
    produce(client, topic, 3)
    alter(client, group, topic, 2)
    forget(client, group, topic.name)
    assert partitions(client.ask(join(group, "A", topic.name), 1)) == {topic.topic_id: (0,)}
    assert Member(client, group, "A", topic).take(max_wait_ms=WAIT_MS) == [(0, 2, 1)]


def test_a_group_that_is_not_there_has_no_offsets(client: RawClient):
    group = offsets(client, "nowhere")
    assert (group.group_id, group.error_code, group.topics) == ("nowhere", 0, ())


def test_offsets_that_are_not_known(client: RawClient):
    """No error, and no long search for what does not exist."""
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    found = offsets(client, group, {topic.name: (0, 5), "nowhere": (0,)})
    assert starts_and_lags(found) == {(topic.name, 0): (-1, -1), (topic.name, 5): (-1, -1), ("nowhere", 0): (-1, -1)}
    assert [each.topic_id for each in found.topics] == [topic.topic_id, bytes(16)]
    assert {each.error_code for each in found.topics[0].partitions} == {0}
    assert offsets(client, group, {}).topics == ()


def test_the_lag_counts_what_is_not_done(client: RawClient):
    topic, group = client.topic(), new_group()
    set_config(client, group, "share.auto.offset.reset", "earliest")
    client.ask(join(group, "A", topic.name), 1)
    produce(client, topic, 5, 4, 3)
    member = Member(client, group, "A", topic)
    assert member.take(max_wait_ms=WAIT_MS) == [(0, 11, 1)]
    assert member.acknowledge((0, 4, [1, 1, 1, 1, 2]), (9, 9, [1])) == 0
    start, _ = kept(client, group, topic)
    assert starts_and_lags(offsets(client, group)) == {(topic.name, 0): (start, 7)}
    assert not hasattr(offsets(client, group, version=0).topics[0].partitions[0], "lag") or (
        offsets(client, group, version=0).topics[0].partitions[0].lag == -1
    )


def test_what_leaders_hold_is_dropped_when_state_is_changed(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch
):
    dropped: list[Any] = []
    monkeypatch.setattr(running.node.share, "drop", lambda *each: dropped.append(each))
    topic, group = client.topic(), new_group()
    client.ask(join(group, "A", topic.name), 1)
    client.ask(beat(group, "A", LEAVE), 1)
    assert dropped == []
    alter(client, group, topic, 1)
    forget(client, group, topic.name)
    alter(client, group, topic, 1)
    client.ask(DeleteGroupsRequest((group,)), 2)
    assert dropped == [(group, {topic.topic_id})] * 4
