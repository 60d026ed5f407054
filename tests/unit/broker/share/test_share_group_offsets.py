"""The offsets of share groups, described, changed and deleted over a real node."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import DeleteGroupsRequest
from tests.unit.broker.desk import Desk, RunningNode
from tests.unit.broker.share.group_desk import (
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
from tests.unit.broker.share.share_desk import Member, kept, new_group, produce, summary


def test_offsets_are_altered(desk: Desk):
    topic, group = desk.topic(), new_group()
    desk.ask(join(group, "A", topic.name), 1)
    produce(desk, topic, 10)
    assert alter(desk, group, topic, 4).error_code == ErrorCode.NON_EMPTY_GROUP
    desk.ask(beat(group, "A", LEAVE), 1)
    answer = alter(desk, group, topic, 4)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    assert starts_and_lags(offsets(desk, group)) == {(topic.name, 0): (4, 6)}


def test_a_group_is_made_by_altering_offsets(desk: Desk):
    topic, group = desk.topic(), new_group()
    assert alter(desk, group, topic, 500).error_code == 0
    (row,) = describe(desk, group)
    assert (row.group_state, row.group_epoch, row.assignment_epoch) == ("Empty", 1, 1)
    assert starts_and_lags(offsets(desk, group)) == {(topic.name, 0): (500, -500)}


def test_altered_offsets_count_at_once(running: RunningNode, desk: Desk):
    """Though a leader has the old ones in memory, for a member that left its group keeps its session."""
    topic, group = desk.topic(), new_group()
    set_config(desk, group, "share.auto.offset.reset", "earliest")
    desk.ask(join(group, "A", topic.name), 1)
    produce(desk, topic, 10)
    member = Member(desk, group, "A", topic)
    assert member.take(max_wait_ms=WAIT_MS) == [(0, 9, 1)]
    assert member.acknowledge((0, 9, [1])) == 0
    desk.ask(beat(group, "A", LEAVE), 1)
    alter(desk, group, topic, 7)
    assert member.take(max_wait_ms=WAIT_MS) == [(7, 9, 1)]


def test_offsets_are_deleted(desk: Desk):
    topic, other, group = desk.topic(), desk.topic(), new_group()
    assert forget(desk, group, topic.name).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert forget(desk, "", topic.name).error_code == ErrorCode.INVALID_GROUP_ID
    desk.ask(join(group, "A", topic.name), 1)
    assert forget(desk, group, topic.name).error_code == ErrorCode.NON_EMPTY_GROUP
    desk.ask(beat(group, "A", LEAVE), 1)
    done, unused, unknown = forget(desk, group, topic.name, other.name, "nowhere").responses
    assert (done.topic_id, done.error_code) == (topic.topic_id, 0)
    assert (unused.error_code, unused.error_message) == (3, "There is no offset information to delete.")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert forget(desk, group, topic.name).responses[0].error_message == "There is no offset information to delete."
    assert summary(desk, group, topic) == (-1, -1)


def test_a_forgotten_topic_begins_anew(desk: Desk):
    topic, group = desk.topic(), new_group()
    set_config(desk, group, "share.auto.offset.reset", "earliest")
    produce(desk, topic, 3)
    alter(desk, group, topic, 2)
    forget(desk, group, topic.name)
    assert partitions(desk.ask(join(group, "A", topic.name), 1)) == {topic.topic_id: (0,)}
    assert Member(desk, group, "A", topic).take(max_wait_ms=WAIT_MS) == [(0, 2, 1)]


def test_a_group_that_is_not_there_has_no_offsets(desk: Desk):
    group = offsets(desk, "nowhere")
    assert (group.group_id, group.error_code, group.topics) == ("nowhere", 0, ())


def test_offsets_that_are_not_known(desk: Desk):
    """No error, and no long search for what does not exist."""
    topic, group = desk.topic(), new_group()
    desk.ask(join(group, "A", topic.name), 1)
    found = offsets(desk, group, {topic.name: (0, 5), "nowhere": (0,)})
    assert starts_and_lags(found) == {(topic.name, 0): (-1, -1), (topic.name, 5): (-1, -1), ("nowhere", 0): (-1, -1)}
    assert [each.topic_id for each in found.topics] == [topic.topic_id, bytes(16)]
    assert {each.error_code for each in found.topics[0].partitions} == {0}
    assert offsets(desk, group, {}).topics == ()


def test_the_lag_counts_what_is_not_done(desk: Desk):
    topic, group = desk.topic(), new_group()
    set_config(desk, group, "share.auto.offset.reset", "earliest")
    desk.ask(join(group, "A", topic.name), 1)
    produce(desk, topic, 5, 4, 3)
    member = Member(desk, group, "A", topic)
    assert member.take(max_wait_ms=WAIT_MS) == [(0, 11, 1)]
    assert member.acknowledge((0, 4, [1, 1, 1, 1, 2]), (9, 9, [1])) == 0
    start, _ = kept(desk, group, topic)
    assert starts_and_lags(offsets(desk, group)) == {(topic.name, 0): (start, 7)}
    assert not hasattr(offsets(desk, group, version=0).topics[0].partitions[0], "lag") or (
        offsets(desk, group, version=0).topics[0].partitions[0].lag == -1
    )


def test_what_leaders_hold_is_dropped_when_state_is_changed(
    running: RunningNode, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    dropped: list[Any] = []
    monkeypatch.setattr(running.node.share, "drop", lambda *each: dropped.append(each))
    topic, group = desk.topic(), new_group()
    desk.ask(join(group, "A", topic.name), 1)
    desk.ask(beat(group, "A", LEAVE), 1)
    assert dropped == []
    alter(desk, group, topic, 1)
    forget(desk, group, topic.name)
    alter(desk, group, topic, 1)
    desk.ask(DeleteGroupsRequest((group,)), 2)
    assert dropped == [(group, {topic.topic_id})] * 4
