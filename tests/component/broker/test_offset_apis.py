"""OffsetCommit, OffsetFetch and OffsetDelete over the wire: every version, what is refused, what survives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.broker.handlers import offset_commit, offset_fetch
from ottla.core.coordinator.partitioner import partition_for
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    DeleteTopicsRequest,
    OffsetFetchRequest,
)
from tests.component.broker.offset_requests import (
    NONE,
    NOWHERE,
    Guard,
    commit,
    commit_request,
    delete,
    fetch,
    fetch_groups,
    found,
    new_group,
)
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient, RunningNode, Topic, batches, running_node

COMMIT_VERSIONS = range(offset_commit.VERSIONS[0], offset_commit.VERSIONS[1] + 1)
FETCH_VERSIONS = range(offset_fetch.VERSIONS[0], offset_fetch.VERSIONS[1] + 1)


def codes(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


# --- every version ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_an_offset_is_committed(client: RawClient, version: int):
    topic, group = client.topic(2), new_group(client)
    epoch = 3 if version >= 6 else -1
    assert commit(client, group, (topic, 1, 42, "note", epoch), version=version) == {(topic.name, 1): NONE}
    assert found(fetch(client, group, {topic: [0, 1]})) == {
        (topic.name, 0): (-1, -1, "", NONE),
        (topic.name, 1): (42, epoch, "note", NONE),
    }


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_an_offset_is_fetched(client: RawClient, version: int):
    topic, group = client.topic(2), new_group(client)
    commit(client, group, (topic, 0, 42, "note", 3))
    name = topic.topic_id if version >= 10 else topic.name
    answer = fetch(client, group, {topic: [0, 1]}, version)
    assert answer.error_code == NONE
    assert found(answer) == {
        (name, 0): (42, 3 if version >= 5 else -1, "note", NONE),
        (name, 1): (-1, -1, "", NONE),
    }


@pytest.mark.parametrize("version", [each for each in FETCH_VERSIONS if each >= 2])
def test_all_offsets_are_fetched(client: RawClient, version: int):
    topic, other, group = client.topic(2), client.topic(1), new_group(client)
    commit(client, group, (topic, 0, 1), (topic, 1, 2), (other, 0, 3))
    named = {each: each.topic_id if version >= 10 else each.name for each in (topic, other)}
    answer = found(fetch(client, group, None, version))
    offsets = {key: offset for key, (offset, *_) in answer.items()}
    assert offsets == {(named[topic], 0): 1, (named[topic], 1): 2, (named[other], 0): 3}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups_are_fetched_at_once(client: RawClient, version: int):
    topic, groups = client.topic(1), [new_group(client) for _ in range(4)]
    for number, group in enumerate(groups[:3]):
        commit(client, group, (topic, 0, number))
    asked: dict[str, Any] = {group: {topic: [0]} for group in groups}
    answer = fetch_groups(client, asked | {groups[0]: None}, version, require_stable=True)
    offsets = {each.group_id: each.topics[0].partitions[0].committed_offset for each in answer.groups}
    assert offsets == dict(zip(groups, [0, 1, 2, -1], strict=True))
    assert all(each.error_code == NONE for each in answer.groups)


def test_no_groups_get_no_answers(client: RawClient):
    assert fetch_groups(client, {}, 9).groups == ()


def test_a_fetch_sent_behind_a_commit_sees_it(client: RawClient):
    topic, group, connection = client.topic(), new_group(client), client.connect()
    kind = OffsetFetchRequest
    asked = kind(groups=(kind.OffsetFetchRequestGroup(group, topics=None),))
    requests = [
        (commit_request(group, (topic, 0, 1)), 9),
        (asked, 9),
        (commit_request(group, (topic, 0, 2)), 9),
        (asked, 9),
    ]
    answers = [
        connection.receive(9 if number % 2 else 8, 9, sent)
        for number, sent in enumerate(connection.send_together(*requests))
    ]
    assert [found(answers[number].groups[0])[(topic.name, 0)][0] for number in (1, 3)] == [1, 2]
    connection.close()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.ILLEGAL_GENERATION), (8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_generation_needs_a_group(client: RawClient, version: int, code: ErrorCode):
    topic, group = client.topic(), new_group(client)
    answer = commit(client, group, (topic, 0, 1), version=version, generation_id_or_member_epoch=0, member_id="m")
    assert answer == {(topic.name, 0): code}


def test_an_offset_only_group_takes_offsets_of_anybody_without_generation(client: RawClient):
    topic, group = client.topic(), new_group(client)
    assert commit(client, group, (topic, 0, 1)) == {(topic.name, 0): NONE}
    assert commit(client, group, (topic, 0, 2), member_id="m") == {(topic.name, 0): NONE}
    answer = commit(client, group, (topic, 0, 3), member_id="m", generation_id_or_member_epoch=0)
    assert answer == {(topic.name, 0): ErrorCode.UNKNOWN_MEMBER_ID}


def test_what_cannot_be_committed_does_not_hold_up_the_rest(client: RawClient):
    topic, group = client.topic(2), new_group(client)
    assert commit(client, group, (topic, 0, 1), (topic, 2, 1), (topic, -1, 1), (NOWHERE, 0, 1)) == {
        (topic.name, 0): NONE,
        (topic.name, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert commit(client, group, (topic, 1, 2), (NOWHERE, 0, 1), version=10) == {
        (topic.name, 1): NONE,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_a_wrong_generation_is_told_beside_an_unknown_topic(client: RawClient):
    topic, group = client.topic(), new_group(client)
    answer = commit(client, group, (topic, 0, 1), (NOWHERE, 0, 1), generation_id_or_member_epoch=1)
    assert answer == {
        (topic.name, 0): ErrorCode.GROUP_ID_NOT_FOUND,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    answer = commit(client, group, (NOWHERE, 0, 1), generation_id_or_member_epoch=1)
    assert answer == {(NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 4096, NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 4096, NONE),
        ("𝄞" * 2048, NONE),
        ("𝄞" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_has_a_limit_in_utf_16_units(client: RawClient, metadata: str, code: ErrorCode):
    topic, group = client.topic(2), new_group(client)
    assert commit(client, group, (topic, 0, 1, metadata), (topic, 1, 2)) == {
        (topic.name, 0): code,
        (topic.name, 1): NONE,
    }
    stored = metadata if code is NONE else ""
    assert found(fetch(client, group, {topic: [0]}))[(topic.name, 0)][2] == stored


def test_odd_values_are_stored_as_they_come(client: RawClient):
    topic, group = client.topic(2), new_group(client)
    assert set(commit(client, group, (topic, 0, -17, None), (topic, 1, 2**63 - 1)).values()) == {NONE}
    assert found(fetch(client, group, None)) == {
        (topic.name, 0): (-17, -1, "", NONE),
        (topic.name, 1): (2**63 - 1, -1, "", NONE),
    }


def test_the_empty_group_id_is_a_group(client: RawClient):
    topic = client.topic()
    new_group(client)
    assert commit(client, "", (topic, 0, 5)) == {(topic.name, 0): NONE}
    assert found(fetch(client, "", {topic: [0]}))[(topic.name, 0)][0] == 5


def test_a_partition_twice_keeps_the_last(client: RawClient):
    topic, group = client.topic(), new_group(client)
    answer = client.ask(commit_request(group, (topic, 0, 1), (topic, 0, 2)), 9)
    assert [each.error_code for each in answer.topics[0].partitions] == [NONE, NONE]
    assert found(fetch(client, group, None))[(topic.name, 0)][0] == 2


def test_what_is_not_there_is_fetched_as_minus_one(client: RawClient):
    topic, group = client.topic(), new_group(client)
    nothing = (-1, -1, "", NONE)
    assert found(fetch(client, group, {topic: [0, 7], NOWHERE: [0]})) == {
        (topic.name, 0): nothing,
        (topic.name, 7): nothing,
        (NOWHERE.name, 0): nothing,
    }
    assert found(fetch(client, group, {topic: [0], NOWHERE: [0]}, 10)) == {
        (topic.topic_id, 0): nothing,
        (NOWHERE.topic_id, 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert fetch(client, group, None).topics == ()


def test_offsets_go_with_their_topic(client: RawClient):
    topic, other, group = client.topic(2), client.topic(), new_group(client)
    commit(client, group, (topic, 0, 1), (topic, 1, 2), (other, 0, 3), version=9)
    state = DeleteTopicsRequest.DeleteTopicState(topic.name)
    assert client.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=5_000), 6).responses[0].error_code == NONE
    for _ in range(READY_ATTEMPTS):  # Apache Kafka gets there by and by
        answer = found(fetch(client, group, None))
        if len(answer) == 1:
            break
    assert set(answer) == {(other.name, 0)}


def test_offsets_are_deleted(client: RawClient):
    topic, group = client.topic(3), new_group(client)
    commit(client, group, (topic, 0, 1), (topic, 1, 2))
    answer = delete(client, group, {topic.name: [0, 2, 3], NOWHERE.name: [0]})
    assert answer.error_code == NONE
    assert codes(answer) == {
        (topic.name, 0): NONE,
        (topic.name, 2): NONE,
        (topic.name, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert set(found(fetch(client, group, None))) == {(topic.name, 1)}


def test_without_a_group_nothing_is_deleted(client: RawClient):
    topic, group = client.topic(), new_group(client)
    for name, code in ((group, ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)):
        answer = delete(client, name, {topic.name: [0]})
        assert (answer.error_code, answer.topics) == (code, ())


def test_the_group_outlives_its_last_offset(client: RawClient):
    topic, group = client.topic(), new_group(client)
    commit(client, group, (topic, 0, 1))
    assert delete(client, group, {topic.name: [0]}).error_code == NONE
    assert delete(client, group, {topic.name: [0]}).error_code == NONE


# --- of a node of ours ------------------------------------------------------------------------------------------------


def test_access_to_groups_and_topics(tmp_path: Path):
    guard = Guard()
    with running_node(tmp_path, authorizer=guard) as running:
        client = running.client
        topic, secret = client.topic(), client.topic()
        assert commit(client, "g", (topic, 0, 1), (secret, 0, 2)) == {(topic.name, 0): NONE, (secret.name, 0): NONE}
        guard.denied |= {("READ", "TOPIC", secret.name), ("DESCRIBE", "TOPIC", secret.name)}
        guard.denied |= {(operation, "GROUP", "h") for operation in ("READ", "DESCRIBE", "DELETE")}
        hidden, closed = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert commit(client, "g", (topic, 0, 3), (secret, 0, 4)) == {(topic.name, 0): NONE, (secret.name, 0): hidden}
        assert commit(client, "h", (topic, 0, 3), (NOWHERE, 0, 1)) == {
            (topic.name, 0): closed,
            (NOWHERE.name, 0): closed,
        }
        assert set(found(fetch(client, "g", None))) == {(topic.name, 0)}
        assert found(fetch(client, "g", {secret: [0]}))[(secret.name, 0)] == (-1, -1, "", hidden)
        answer = fetch_groups(client, {"h": None, "g": None}, 8)
        assert [each.error_code for each in answer.groups] == [closed, NONE]
        assert fetch(client, "h", {topic: [0]}, 7).error_code == closed
        assert found(fetch(client, "h", {topic: [0]}, 1)) == {(topic.name, 0): (-1, -1, "", closed)}
        assert delete(client, "h", {topic.name: [0]}).error_code == closed
        assert codes(delete(client, "g", {secret.name: [0]})) == {(secret.name, 0): hidden}


def test_offsets_survive_a_restart(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic(2)
        commit(running.client, "g", (topic, 0, 41, "note", 2), (topic, 1, 7))
        commit(running.client, "g", (topic, 0, 42, "note", 2))
        delete(running.client, "g", {topic.name: [1]})
    with running_node(tmp_path) as running:
        assert found(fetch(running.client, "g", None)) == {(topic.name, 0): (42, 2, "note", NONE)}


def test_commits_sent_together_share_a_batch(running: RunningNode):
    client = running.client
    topic, group, connection = client.topic(), new_group(client), client.connect()
    sent = connection.send_together(*[(commit_request(group, (topic, 0, number)), 9) for number in range(100)])
    for number in sent:
        assert connection.receive(8, 9, number).topics[0].partitions[0].error_code == NONE
    assert found(fetch(client, group, None))[(topic.name, 0)][0] == 99
    internal = running.node.image.topics_by_name["__consumer_offsets"]
    offsets = Topic(internal.name, internal.topic_id)
    written = batches(client.fetch(offsets, partition=partition_for(group, len(internal.partitions))))
    counts = [sum(group.encode() in bytes(record.key or b"") for record in each.records()) for each in written]
    assert sum(counts) == 100
    assert len([each for each in counts if each]) <= 3  # one for each piece in which the requests arrived
