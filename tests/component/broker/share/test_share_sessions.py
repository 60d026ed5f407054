"""Share sessions over the wire: epochs, connections, forgetting, the limit, and what an answer contains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.wire.types import ShareFetchRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, running_node
from tests.component.broker.share.share_members import Member, acquired, filled, initialize, new_group, produce

EPOCH_MAX = 2**31 - 1


@pytest.fixture
def topic(client: RawClient) -> Topic:
    topic = client.topic()
    produce(client, topic, 5)
    return topic


@pytest.fixture
def group(client: RawClient, topic: Topic) -> str:
    group = new_group()
    initialize(client, group, topic)
    return group


def opened(client: RawClient, group: str, name: str, topic: Topic, **fields: Any) -> Member:
    """A member with a session that has acquired nothing."""
    member = Member(client, group, name, topic)
    assert member.fetch(max_records=0, **fields).error_code == 0
    return member


def at(partition: int, *, topic: Topic) -> tuple[ShareFetchRequest.ForgottenTopic, ...]:
    return (ShareFetchRequest.ForgottenTopic(topic.topic_id, (partition,)),)


def test_epochs_without_a_session_are_refused(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    assert member.fetch(epoch=4).error_code == 122
    assert member.fetch(epoch=-1).error_code == 122
    assert member.acknowledge_all({}, epoch=4).error_code == 122
    assert member.acknowledge_all({}, epoch=-1).error_code == 122
    assert member.acknowledge_all({}, epoch=0).error_code == 123


def test_another_epoch_leaves_the_session_alone(client: RawClient, group: str, topic: Topic):
    member = opened(client, group, "a", topic)
    member.fetch()
    member.fetch()
    assert member.epoch == 3
    for epoch in (2, 4):
        assert member.fetch(epoch=epoch).error_code == 123
        assert member.acknowledge_all({}, epoch=epoch).error_code == 123
    assert member.fetch(epoch=3).error_code == 0


def test_a_first_fetch_has_nothing_to_acknowledge(client: RawClient, group: str, topic: Topic):
    member = opened(client, group, "a", topic)
    answer = member.fetch({0: [(0, 4, [1])]}, epoch=0)
    assert (answer.error_code, answer.error_message, answer.responses) == (42, None, ())
    assert answer.acquisition_lock_timeout_ms == 0
    assert member.take() == [(0, 4, 1)], "the old session goes on"


def test_after_the_last_epoch_comes_1(running: RunningNode, client: RawClient, group: str, topic: Topic):
    member = opened(client, group, "a", topic)
    session = running.node.share.leader.sessions.get(group, "a")
    assert session is not None
    session.next_epoch = EPOCH_MAX
    assert member.fetch(epoch=EPOCH_MAX).error_code == 0
    assert member.fetch(epoch=1).error_code == 0


def test_a_new_session_releases_nothing(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    member.epoch = 0
    assert member.take() == []
    assert member.acknowledge((0, 4, [1])) == 0


def test_a_lost_connection_releases(client: RawClient, group: str, topic: Topic):
    first, second = Member(client, group, "a", topic), opened(client, group, "b", topic)
    assert first.take() == [(0, 4, 1)]
    number = second.send(max_wait_ms=60_000)
    first.close()
    assert acquired(second.receive(number)) == [(0, 4, 2)]


def test_another_connection_of_the_member_plays_no_part(client: RawClient, group: str, topic: Topic):
    first, second = Member(client, group, "a", topic), opened(client, group, "b", topic)
    heartbeats = client.connect("a")
    heartbeats.ask(first.request(4), 2)
    assert first.take() == [(0, 4, 1)]
    heartbeats.close()
    client.ask(second.request(7), 2)  # by now the node has seen to it
    assert second.take() == []
    assert first.acknowledge((0, 4, [1])) == 0


def test_forgotten_partitions_are_not_fetched(client: RawClient):
    topic, group = client.topic(2), new_group()
    initialize(client, group, topic, 0, 1)
    produce(client, topic, 2, partition=0)
    produce(client, topic, 3, partition=1)
    member = Member(client, group, "a", topic, 0, 1)
    assert sorted(member.take()) == [(0, 1, 1), (0, 2, 1)]
    produce(client, topic, 1, partition=0)
    produce(client, topic, 1, partition=1)
    answer = member.fetch(forgotten_topics_data=at(0, topic=topic))
    assert [each.partition_index for each in answer.responses[0].partitions] == [1]
    assert acquired(answer) == [(3, 3, 1)]
    assert member.acknowledge((0, 1, [1]), partition=0) == 0


def test_records_of_forgotten_partitions_are_not_released_at_the_end(client: RawClient, group: str, topic: Topic):
    member, other = Member(client, group, "a", topic), opened(client, group, "b", topic)
    assert member.take() == [(0, 4, 1)]
    member.fetch(forgotten_topics_data=at(0, topic=topic))
    member.fetch(epoch=-1)
    assert other.take() == []


def test_added_and_forgotten_at_once_is_not_in_the_session(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    assert member.take(forgotten_topics_data=at(0, topic=topic)) == []
    assert member.take() == []


def test_a_session_that_went_on_without_the_waiting_fetch(client: RawClient, group: str, topic: Topic):
    member = opened(client, group, "a", topic)
    member.take()
    waiting = member.send(max_wait_ms=60_000)
    second = client.connect("a")
    answer = second.ask(member.request(member.epoch, max_records=0), 2)
    assert answer.error_code == 0
    produce(client, topic, 3)
    late = member.receive(waiting)
    assert (late.error_code, late.responses) == (123, ())
    assert acquired(second.ask(member.request(member.epoch + 1), 2)) == [(5, 7, 1)], "none was acquired in vain"


def test_an_old_connection_does_not_end_a_new_session(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    old = member.connection
    member.connection, member.epoch = client.connect("a"), 0
    assert member.take() == []
    old.close()
    other = opened(client, group, "b", topic)
    assert other.take() == []
    assert member.acknowledge((0, 4, [1])) == 0


def test_last_epoch_of_a_fetch_acknowledges_and_then_releases(client: RawClient, group: str, topic: Topic):
    member, other = Member(client, group, "a", topic), opened(client, group, "b", topic)
    assert member.take() == [(0, 4, 1)]
    answer = member.fetch({0: [(0, 1, [1])]}, epoch=-1)
    assert acquired(answer) == []
    assert [(each.acknowledge_error_code, each.records) for each in answer.responses[0].partitions] == [(0, b"")]
    assert other.take(max_wait_ms=60_000) == [(2, 4, 2)]
    assert member.fetch(epoch=-1).error_code == 122


def test_last_epoch_of_an_acknowledgement_releases(client: RawClient, group: str, topic: Topic):
    member, other = Member(client, group, "a", topic), opened(client, group, "b", topic)
    assert member.take() == [(0, 4, 1)]
    assert member.acknowledge((0, 1, [1]), epoch=-1) == 0
    assert other.take(max_wait_ms=60_000) == [(2, 4, 2)]


def test_a_group_without_sessions_is_forgotten(running: RunningNode, client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    assert any(led.key.group_id == group for led in running.node.share.leader)
    member.fetch(epoch=-1)
    client.topic()  # a while later
    assert not any(led.key.group_id == group for led in running.node.share.leader)
    member.epoch = 0
    assert member.take(max_wait_ms=60_000) == [(0, 4, 2)]


def test_unknown_acquire_mode_fails_after_the_epoch_moved(client: RawClient, group: str, topic: Topic):
    member = opened(client, group, "a", topic)
    assert member.fetch(share_acquire_mode=7).error_code == -1
    assert member.take() == [(0, 4, 1)]


def test_everything_listed_joins_the_session(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    member.partitions = ()
    assert member.fetch().responses == ()
    answer = member.fetch({0: [(0, 0, [1])]})
    assert answer.responses[0].partitions[0].acknowledge_error_code == 3, "nothing was loaded before"
    assert acquired(answer) == [(0, 4, 1)]


# --- what an answer contains ------------------------------------------------------------------------------------------


def test_later_answers_have_only_news(client: RawClient, group: str, topic: Topic):
    member = Member(client, group, "a", topic)
    first = member.fetch(max_wait_ms=60_000)
    assert len(first.responses) == 1
    assert member.fetch().responses == ()
    produce(client, topic, 1)
    assert acquired(member.fetch()) == [(5, 5, 1)]


def test_first_answer_has_partitions_without_records(client: RawClient, group: str, topic: Topic):
    other = Member(client, group, "b", topic)
    other.take()
    answer = Member(client, group, "a", topic).fetch()
    assert [(each.error_code, each.records, each.acquired_records) for each in answer.responses[0].partitions] == [
        (0, b"", ())
    ]


def test_one_with_records_goes_to_the_end(client: RawClient):
    topic, group = filled(client, 4, partitions=3)
    member = Member(client, group, "a", topic, 0, 1, 2)
    took = []
    for _ in range(6):
        answer = member.fetch(max_records=1, share_acquire_mode=1)
        took += [each.partition_index for topic in answer.responses for each in topic.partitions if each.records]
    assert took == [0, 1, 2, 0, 1, 2]


# --- the limit --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[RunningNode]:
    settings = {"group_share_max_share_sessions": 3, "group_share_max_size": 3}
    with running_node(tmp_path, ManualClock(), share_coordinator_state_topic_num_partitions=1, **settings) as running:
        yield running


def test_no_room_for_another_session(small: RunningNode):
    client = small.client
    topic, group = client.topic(), new_group()
    initialize(client, group, topic)
    members = [opened(client, group, name, topic) for name in "abc"]
    late = Member(client, group, "d", topic)
    number = late.send(max_wait_ms=500)
    assert late.connection.is_silent(0.05)
    small.advance(499)
    assert late.connection.is_silent(0.05)
    small.advance(1)
    answer = late.receive(number)
    assert (answer.error_code, answer.responses) == (133, ())
    members[0].epoch = 0
    assert members[0].fetch().error_code == 0, "who has a session may open it anew"
    members[0].fetch(epoch=-1)
    late.epoch = 0
    assert late.fetch().error_code == 0
