"""OffsetCommit, OffsetFetch and OffsetDelete over the wire: every version, what is refused, what survives."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.handlers import offset_commit, offset_fetch
from ottla.broker.network.request import Request
from ottla.core.coordinator.partitioner import partition_for
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from tests.unit.broker.desk import READY_ATTEMPTS, Desk, RunningNode, Topic, batches, running_node

NONE = ErrorCode.NONE
COMMIT_VERSIONS = range(offset_commit.VERSIONS[0], offset_commit.VERSIONS[1] + 1)
FETCH_VERSIONS = range(offset_fetch.VERSIONS[0], offset_fetch.VERSIONS[1] + 1)
NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
NOWHERE = Topic("nowhere", b"N" * 16)
_serial = count()

Found = tuple[int, int, str, ErrorCode]
"""Offset, leader epoch, metadata, error."""


def new_group(desk: Desk) -> str:
    """A name nobody has used, at a coordinator that is there: Apache Kafka needs a moment for the first."""
    name = f"group-{next(_serial)}"
    for _ in range(READY_ATTEMPTS):
        (found,) = desk.ask(FindCoordinatorRequest(coordinator_keys=(name,)), 6).coordinators
        if found.error_code == NONE and fetch(desk, name, None, version=8).error_code not in NOT_READY:
            return name
    raise AssertionError(f"{name} has no coordinator")


def commit(
    desk: Desk, group: str, *offsets: tuple[Any, ...], version: int = 9, **fields: Any
) -> dict[tuple[str, int], ErrorCode]:
    """Offsets are topic, partition, offset, metadata, leader epoch; the answer is a code for each partition."""
    answer = desk.ask(commit_request(group, *offsets, **fields), version)
    names = {topic.topic_id: topic.name for topic, *_ in offsets}
    return {
        (topic.name or names[topic.topic_id], each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def commit_request(group: str, *offsets: tuple[Any, ...], **fields: Any) -> OffsetCommitRequest:
    kind = OffsetCommitRequest
    topics: dict[Topic, list[Any]] = {}
    for topic, partition, offset, *rest in offsets:
        metadata, epoch = (*rest, *("", -1)[len(rest) :])
        topics.setdefault(topic, []).append(kind.OffsetCommitRequestPartition(partition, offset, epoch, metadata))
    return kind(
        group,
        topics=tuple(
            kind.OffsetCommitRequestTopic(topic.name, topic.topic_id, tuple(each)) for topic, each in topics.items()
        ),
        **fields,
    )


def fetch_groups(desk: Desk, groups: dict[str, dict[Topic, list[int]] | None], version: int, **fields: Any) -> Any:
    kind = OffsetFetchRequest
    if version < 8:
        ((group, topics),) = groups.items()
        asked = topics and tuple(kind.OffsetFetchRequestTopic(each.name, tuple(topics[each])) for each in topics)
        return desk.ask(kind(group, asked, **fields), version)
    return desk.ask(
        kind(
            groups=tuple(
                kind.OffsetFetchRequestGroup(
                    group,
                    topics=topics
                    and tuple(
                        kind.OffsetFetchRequestTopics(each.name, each.topic_id, tuple(topics[each])) for each in topics
                    ),
                )
                for group, topics in groups.items()
            ),
            **fields,
        ),
        version,
    )


def fetch(desk: Desk, group: str, topics: dict[Topic, list[int]] | None, version: int = 9, **fields: Any) -> Any:
    """The answer for one group, whatever the version."""
    answer = fetch_groups(desk, {group: topics}, version, **fields)
    return answer if version < 8 else answer.groups[0]


def found(answer: Any) -> dict[tuple[Any, int], Found]:
    """By topic, as the version names it, and partition."""
    return {
        (getattr(topic, "name", "") or topic.topic_id, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            ErrorCode(each.error_code),
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def delete(desk: Desk, group: str, topics: dict[str, list[int]]) -> Any:
    kind = OffsetDeleteRequest
    asked = tuple(
        kind.OffsetDeleteRequestTopic(name, tuple(map(kind.OffsetDeleteRequestPartition, indexes)))
        for name, indexes in topics.items()
    )
    return desk.ask(kind(group, asked), 0)


def codes(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


# --- every version ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_an_offset_is_committed(desk: Desk, version: int):
    topic, group = desk.topic(2), new_group(desk)
    epoch = 3 if version >= 6 else -1
    assert commit(desk, group, (topic, 1, 42, "note", epoch), version=version) == {(topic.name, 1): NONE}
    assert found(fetch(desk, group, {topic: [0, 1]})) == {
        (topic.name, 0): (-1, -1, "", NONE),
        (topic.name, 1): (42, epoch, "note", NONE),
    }


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_an_offset_is_fetched(desk: Desk, version: int):
    topic, group = desk.topic(2), new_group(desk)
    commit(desk, group, (topic, 0, 42, "note", 3))
    name = topic.topic_id if version >= 10 else topic.name
    answer = fetch(desk, group, {topic: [0, 1]}, version)
    assert answer.error_code == NONE
    assert found(answer) == {
        (name, 0): (42, 3 if version >= 5 else -1, "note", NONE),
        (name, 1): (-1, -1, "", NONE),
    }


@pytest.mark.parametrize("version", [each for each in FETCH_VERSIONS if each >= 2])
def test_all_offsets_are_fetched(desk: Desk, version: int):
    topic, other, group = desk.topic(2), desk.topic(1), new_group(desk)
    commit(desk, group, (topic, 0, 1), (topic, 1, 2), (other, 0, 3))
    named = {each: each.topic_id if version >= 10 else each.name for each in (topic, other)}
    answer = found(fetch(desk, group, None, version))
    offsets = {key: offset for key, (offset, *_) in answer.items()}
    assert offsets == {(named[topic], 0): 1, (named[topic], 1): 2, (named[other], 0): 3}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_several_groups_are_fetched_at_once(desk: Desk, version: int):
    topic, groups = desk.topic(1), [new_group(desk) for _ in range(4)]
    for number, group in enumerate(groups[:3]):
        commit(desk, group, (topic, 0, number))
    asked: dict[str, Any] = {group: {topic: [0]} for group in groups}
    answer = fetch_groups(desk, asked | {groups[0]: None}, version, require_stable=True)
    offsets = {each.group_id: each.topics[0].partitions[0].committed_offset for each in answer.groups}
    assert offsets == dict(zip(groups, [0, 1, 2, -1], strict=True))
    assert all(each.error_code == NONE for each in answer.groups)


def test_no_groups_get_no_answers(desk: Desk):
    assert fetch_groups(desk, {}, 9).groups == ()


def test_a_fetch_sent_behind_a_commit_sees_it(desk: Desk):
    topic, group, line = desk.topic(), new_group(desk), desk.connect()
    kind = OffsetFetchRequest
    asked = kind(groups=(kind.OffsetFetchRequestGroup(group, topics=None),))
    requests = [
        (commit_request(group, (topic, 0, 1)), 9),
        (asked, 9),
        (commit_request(group, (topic, 0, 2)), 9),
        (asked, 9),
    ]
    answers = [
        line.receive(9 if number % 2 else 8, 9, sent) for number, sent in enumerate(line.send_together(*requests))
    ]
    assert [found(answers[number].groups[0])[(topic.name, 0)][0] for number in (1, 3)] == [1, 2]
    line.close()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.ILLEGAL_GENERATION), (8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_generation_needs_a_group(desk: Desk, version: int, code: ErrorCode):
    topic, group = desk.topic(), new_group(desk)
    answer = commit(desk, group, (topic, 0, 1), version=version, generation_id_or_member_epoch=0, member_id="m")
    assert answer == {(topic.name, 0): code}


def test_an_offset_only_group_takes_offsets_of_anybody_without_generation(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    assert commit(desk, group, (topic, 0, 1)) == {(topic.name, 0): NONE}
    assert commit(desk, group, (topic, 0, 2), member_id="m") == {(topic.name, 0): NONE}
    answer = commit(desk, group, (topic, 0, 3), member_id="m", generation_id_or_member_epoch=0)
    assert answer == {(topic.name, 0): ErrorCode.UNKNOWN_MEMBER_ID}


def test_what_cannot_be_committed_does_not_hold_up_the_rest(desk: Desk):
    topic, group = desk.topic(2), new_group(desk)
    assert commit(desk, group, (topic, 0, 1), (topic, 2, 1), (topic, -1, 1), (NOWHERE, 0, 1)) == {
        (topic.name, 0): NONE,
        (topic.name, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert commit(desk, group, (topic, 1, 2), (NOWHERE, 0, 1), version=10) == {
        (topic.name, 1): NONE,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_a_wrong_generation_is_told_beside_an_unknown_topic(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    answer = commit(desk, group, (topic, 0, 1), (NOWHERE, 0, 1), generation_id_or_member_epoch=1)
    assert answer == {
        (topic.name, 0): ErrorCode.GROUP_ID_NOT_FOUND,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    answer = commit(desk, group, (NOWHERE, 0, 1), generation_id_or_member_epoch=1)
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
def test_metadata_has_a_limit_in_utf_16_units(desk: Desk, metadata: str, code: ErrorCode):
    topic, group = desk.topic(2), new_group(desk)
    assert commit(desk, group, (topic, 0, 1, metadata), (topic, 1, 2)) == {(topic.name, 0): code, (topic.name, 1): NONE}
    stored = metadata if code is NONE else ""
    assert found(fetch(desk, group, {topic: [0]}))[(topic.name, 0)][2] == stored


def test_odd_values_are_stored_as_they_come(desk: Desk):
    topic, group = desk.topic(2), new_group(desk)
    assert set(commit(desk, group, (topic, 0, -17, None), (topic, 1, 2**63 - 1)).values()) == {NONE}
    assert found(fetch(desk, group, None)) == {
        (topic.name, 0): (-17, -1, "", NONE),
        (topic.name, 1): (2**63 - 1, -1, "", NONE),
    }


def test_the_empty_group_id_is_a_group(desk: Desk):
    topic = desk.topic()
    new_group(desk)
    assert commit(desk, "", (topic, 0, 5)) == {(topic.name, 0): NONE}
    assert found(fetch(desk, "", {topic: [0]}))[(topic.name, 0)][0] == 5


def test_a_partition_twice_keeps_the_last(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    answer = desk.ask(commit_request(group, (topic, 0, 1), (topic, 0, 2)), 9)
    assert [each.error_code for each in answer.topics[0].partitions] == [NONE, NONE]
    assert found(fetch(desk, group, None))[(topic.name, 0)][0] == 2


def test_what_is_not_there_is_fetched_as_minus_one(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    nothing = (-1, -1, "", NONE)
    assert found(fetch(desk, group, {topic: [0, 7], NOWHERE: [0]})) == {
        (topic.name, 0): nothing,
        (topic.name, 7): nothing,
        (NOWHERE.name, 0): nothing,
    }
    assert found(fetch(desk, group, {topic: [0], NOWHERE: [0]}, 10)) == {
        (topic.topic_id, 0): nothing,
        (NOWHERE.topic_id, 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert fetch(desk, group, None).topics == ()


def test_offsets_go_with_their_topic(desk: Desk):
    topic, other, group = desk.topic(2), desk.topic(), new_group(desk)
    commit(desk, group, (topic, 0, 1), (topic, 1, 2), (other, 0, 3), version=9)
    state = DeleteTopicsRequest.DeleteTopicState(topic.name)
    assert desk.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=5_000), 6).responses[0].error_code == NONE
    for _ in range(READY_ATTEMPTS):  # Apache Kafka gets there by and by
        answer = found(fetch(desk, group, None))
        if len(answer) == 1:
            break
    assert set(answer) == {(other.name, 0)}


def test_offsets_are_deleted(desk: Desk):
    topic, group = desk.topic(3), new_group(desk)
    commit(desk, group, (topic, 0, 1), (topic, 1, 2))
    answer = delete(desk, group, {topic.name: [0, 2, 3], NOWHERE.name: [0]})
    assert answer.error_code == NONE
    assert codes(answer) == {
        (topic.name, 0): NONE,
        (topic.name, 2): NONE,
        (topic.name, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert set(found(fetch(desk, group, None))) == {(topic.name, 1)}


def test_without_a_group_nothing_is_deleted(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    for name, code in ((group, ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID)):
        answer = delete(desk, name, {topic.name: [0]})
        assert (answer.error_code, answer.topics) == (code, ())


def test_the_group_outlives_its_last_offset(desk: Desk):
    topic, group = desk.topic(), new_group(desk)
    commit(desk, group, (topic, 0, 1))
    assert delete(desk, group, {topic.name: [0]}).error_code == NONE
    assert delete(desk, group, {topic.name: [0]}).error_code == NONE


# --- of a node of ours ------------------------------------------------------------------------------------------------


class Guard:
    """Refuses what it is told to."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str, str]] = set()

    def __call__(self, request: Request, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation.name, kind.name, name) not in self.denied


def test_access_to_groups_and_topics(tmp_path: Path):
    guard = Guard()
    with running_node(tmp_path, authorizer=guard) as running:
        desk = running.desk
        topic, secret = desk.topic(), desk.topic()
        assert commit(desk, "g", (topic, 0, 1), (secret, 0, 2)) == {(topic.name, 0): NONE, (secret.name, 0): NONE}
        guard.denied |= {("READ", "TOPIC", secret.name), ("DESCRIBE", "TOPIC", secret.name)}
        guard.denied |= {(operation, "GROUP", "h") for operation in ("READ", "DESCRIBE", "DELETE")}
        hidden, closed = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert commit(desk, "g", (topic, 0, 3), (secret, 0, 4)) == {(topic.name, 0): NONE, (secret.name, 0): hidden}
        assert commit(desk, "h", (topic, 0, 3), (NOWHERE, 0, 1)) == {
            (topic.name, 0): closed,
            (NOWHERE.name, 0): closed,
        }
        assert set(found(fetch(desk, "g", None))) == {(topic.name, 0)}
        assert found(fetch(desk, "g", {secret: [0]}))[(secret.name, 0)] == (-1, -1, "", hidden)
        answer = fetch_groups(desk, {"h": None, "g": None}, 8)
        assert [each.error_code for each in answer.groups] == [closed, NONE]
        assert fetch(desk, "h", {topic: [0]}, 7).error_code == closed
        assert found(fetch(desk, "h", {topic: [0]}, 1)) == {(topic.name, 0): (-1, -1, "", closed)}
        assert delete(desk, "h", {topic.name: [0]}).error_code == closed
        assert codes(delete(desk, "g", {secret.name: [0]})) == {(secret.name, 0): hidden}


def test_offsets_survive_a_restart(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.desk.topic(2)
        commit(running.desk, "g", (topic, 0, 41, "note", 2), (topic, 1, 7))
        commit(running.desk, "g", (topic, 0, 42, "note", 2))
        delete(running.desk, "g", {topic.name: [1]})
    with running_node(tmp_path) as running:
        assert found(fetch(running.desk, "g", None)) == {(topic.name, 0): (42, 2, "note", NONE)}


def test_commits_sent_together_share_a_batch(running: RunningNode):
    desk = running.desk
    topic, group, line = desk.topic(), new_group(desk), desk.connect()
    sent = line.send_together(*[(commit_request(group, (topic, 0, number)), 9) for number in range(100)])
    for number in sent:
        assert line.receive(8, 9, number).topics[0].partitions[0].error_code == NONE
    assert found(fetch(desk, group, None))[(topic.name, 0)][0] == 99
    internal = running.node.image.topics_by_name["__consumer_offsets"]
    offsets = Topic(internal.name, internal.topic_id)
    written = batches(desk.fetch(offsets, partition=partition_for(group, len(internal.partitions))))
    counts = [sum(group.encode() in bytes(record.key or b"") for record in each.records()) for each in written]
    assert sum(counts) == 100
    assert len([each for each in counts if each]) <= 3  # one for each piece in which the requests arrived
