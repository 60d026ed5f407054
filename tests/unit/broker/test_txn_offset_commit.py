"""TxnOffsetCommit over the wire: offsets that appear with a transaction's end, every version, what is refused."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.broker.handlers.txn_offset_commit import VERSIONS
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from tests.unit.broker.desk import READY_ATTEMPTS, Desk, Topic, running_node
from tests.unit.broker.offset_requests import NOWHERE, Guard, commit, delete, fetch, found, new_group

NONE = ErrorCode.NONE
TOLD_BY_ITSELF_FROM = 5
BY_ID_FROM = 6
TRANSACTION = 1
NOT_READY = {14, 15, 16, ErrorCode.CONCURRENT_TRANSACTIONS}
_serial = count()


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int


def until_ready(desk: Desk, request: object, version: int) -> Any:
    """Apache Kafka needs a moment for its first transaction, and between two of them."""
    for _ in range(READY_ATTEMPTS):
        answer = desk.ask(request, version)
        if answer.error_code not in NOT_READY:
            return answer
    raise AssertionError(f"{type(request).__name__} is not answered: {answer}")


def new_producer(desk: Desk) -> Producer:
    name = f"tx-{next(_serial)}"
    desk.ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(name,)), 6)  # makes the topic, if need be
    answer = until_ready(desk, InitProducerIdRequest(name, 60_000), 5)
    assert answer.error_code == NONE
    return Producer(name, answer.producer_id, answer.producer_epoch)


def add_group(desk: Desk, producer: Producer, group: str) -> None:
    answer = until_ready(desk, AddOffsetsToTxnRequest(*producer, group), 3)
    assert answer.error_code == NONE


def end(desk: Desk, producer: Producer, *, committed: bool) -> Producer:
    """Gives the producer of the next transaction."""
    answer = until_ready(desk, EndTxnRequest(*producer, committed), 5)
    assert answer.error_code == NONE
    return Producer(producer.transactional_id, answer.producer_id, answer.producer_epoch)


def commit_in(
    desk: Desk, producer: Producer, group: str, *offsets: tuple[Any, ...], version: int = 5, **fields: Any
) -> dict[tuple[str, int], ErrorCode]:
    """Offsets are topic, partition, offset, metadata."""
    kind = TxnOffsetCommitRequest
    topics: dict[Topic, list[Any]] = {}
    for topic, partition, offset, *rest in offsets:
        metadata = rest[0] if rest else ""
        topics.setdefault(topic, []).append(kind.TxnOffsetCommitRequestPartition(partition, offset, -1, metadata))
    named = tuple(
        kind.TxnOffsetCommitRequestTopic(topic.name, topic.topic_id, tuple(each)) for topic, each in topics.items()
    )
    transactional_id, producer_id, epoch = producer
    answer = desk.ask(kind(transactional_id, group, producer_id, epoch, topics=named, **fields), version)
    names = {topic.topic_id: topic.name for topic in topics}
    return {
        (topic.name or names[topic.topic_id], each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def stable_offset(desk: Desk, group: str, topic: Topic) -> int:
    """Waits for the marker, which Apache Kafka writes after it has answered EndTxn."""
    for _ in range(READY_ATTEMPTS):
        offset, _, _, code = found(fetch(desk, group, {topic: [0]}, 7, require_stable=True))[(topic.name, 0)]
        if code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            return offset
    raise AssertionError("the transaction does not end")


@pytest.mark.parametrize("version", range(VERSIONS[0], BY_ID_FROM))
def test_an_offset_appears_with_the_commit(desk: Desk, version: int):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    commit(desk, group, (topic, 0, 1))
    if version < TOLD_BY_ITSELF_FROM:
        add_group(desk, producer, group)
    assert commit_in(desk, producer, group, (topic, 0, 2, "note"), version=version) == {(topic.name, 0): NONE}
    unstable = (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert found(fetch(desk, group, {topic: [0]}, 7, require_stable=True)) == {(topic.name, 0): unstable}
    assert found(fetch(desk, group, None, 7, require_stable=True)) == {(topic.name, 0): unstable}
    assert found(fetch(desk, group, {topic: [0]}, 7)) == {(topic.name, 0): (1, -1, "", NONE)}
    end(desk, producer, committed=True)
    assert stable_offset(desk, group, topic) == 2


def test_an_abort_leaves_what_was_there(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    commit(desk, group, (topic, 0, 1))
    commit_in(desk, producer, group, (topic, 0, 2))
    end(desk, producer, committed=False)
    assert stable_offset(desk, group, topic) == 1


def test_a_later_plain_commit_is_newer_than_the_transaction(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    commit_in(desk, producer, group, (topic, 0, 2))
    commit(desk, group, (topic, 0, 5))
    end(desk, producer, committed=True)
    assert stable_offset(desk, group, topic) == 5


def test_a_deleted_offset_does_not_come_back(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    commit_in(desk, producer, group, (topic, 0, 2))
    assert delete(desk, group, {topic.name: [0]}).topics[0].partitions[0].error_code == NONE
    end(desk, producer, committed=True)
    assert stable_offset(desk, group, topic) == -1


def test_one_transaction_after_the_other(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    for number in range(5):
        for _ in range(READY_ATTEMPTS):
            answer = commit_in(desk, producer, group, (topic, 0, number))
            if answer != {(topic.name, 0): ErrorCode.CONCURRENT_TRANSACTIONS}:
                break
        assert answer == {(topic.name, 0): NONE}
        producer = end(desk, producer, committed=number % 2 == 0)
    assert stable_offset(desk, group, topic) == 4


@pytest.mark.parametrize(
    ("version", "code"),
    [(0, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_before_version_5_the_transaction_must_know_the_group(desk: Desk, version: int, code: ErrorCode):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    assert commit_in(desk, producer, group, (topic, 0, 2), version=version) == {(topic.name, 0): code}
    assert found(fetch(desk, group, {topic: [0]}, 7, require_stable=True))[(topic.name, 0)][3] is NONE


def test_an_older_producer_is_fenced(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    until_ready(desk, InitProducerIdRequest(producer.transactional_id, 60_000), 5)
    answer = commit_in(desk, producer, group, (topic, 0, 2))
    assert answer == {(topic.name, 0): ErrorCode.INVALID_PRODUCER_EPOCH}


def test_an_unknown_producer_is_refused(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    stranger = producer._replace(producer_id=999_999)
    answer = commit_in(desk, stranger, group, (topic, 0, 2))
    assert answer == {(topic.name, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_the_group_says_who_may_commit(desk: Desk):
    topic, group, producer = desk.topic(), new_group(desk), new_producer(desk)
    member = {"member_id": "m", "generation_id_or_member_epoch": 0}
    answer = commit_in(desk, producer, group, (topic, 0, 2), **member)
    assert answer == {(topic.name, 0): ErrorCode.ILLEGAL_GENERATION}  # there is no such group
    commit(desk, group, (topic, 0, 1))
    answer = commit_in(desk, producer, group, (topic, 0, 2), **member)
    assert answer == {(topic.name, 0): ErrorCode.UNKNOWN_MEMBER_ID}


def test_what_cannot_be_committed_does_not_hold_up_the_rest(desk: Desk):
    topic, group, producer = desk.topic(2), new_group(desk), new_producer(desk)
    offsets = [(topic, 0, 1), (topic, 2, 1), (topic, 1, 1, "x" * 4097), (NOWHERE, 0, 1)]
    assert commit_in(desk, producer, group, *offsets) == {
        (topic.name, 0): NONE,
        (topic.name, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_group_needs_a_name(desk: Desk):
    topic, producer = desk.topic(), new_producer(desk)
    assert commit_in(desk, producer, "", (topic, 0, 1)) == {(topic.name, 0): ErrorCode.INVALID_GROUP_ID}


# --- of a node of ours ------------------------------------------------------------------------------------------------


def test_version_6_names_topics_by_id(tmp_path: Path):
    with running_node(tmp_path) as running:
        desk = running.desk
        topic, producer = desk.topic(), new_producer(desk)
        answer = commit_in(desk, producer, "g", (topic, 0, 2), (NOWHERE, 0, 1), version=6)
        assert answer == {(topic.name, 0): NONE, (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_ID}
        end(desk, producer, committed=True)
        assert stable_offset(desk, "g", topic) == 2


def test_the_first_commit_makes_the_topic_of_offsets(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic, producer = running.desk.topic(), new_producer(running.desk)
        assert running.node.image.topics_by_name.get("__consumer_offsets") is None
        assert commit_in(running.desk, producer, "g", (topic, 0, 2)) == {(topic.name, 0): NONE}


def test_an_open_transaction_survives_a_restart(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic, producer = running.desk.topic(), new_producer(running.desk)
        commit_in(running.desk, producer, "g", (topic, 0, 2))
    with running_node(tmp_path) as running:
        code = found(fetch(running.desk, "g", {topic: [0]}, 7, require_stable=True))[(topic.name, 0)][3]
        assert code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        end(running.desk, producer, committed=True)
        assert stable_offset(running.desk, "g", topic) == 2


def test_access_to_the_transaction_the_group_and_the_topic(tmp_path: Path):
    guard = Guard()
    with running_node(tmp_path, authorizer=guard) as running:
        desk = running.desk
        topic, producer = desk.topic(), new_producer(desk)
        for denied, code in (
            (("READ", "TOPIC", topic.name), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            (("READ", "GROUP", "g"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
            (("WRITE", "TRANSACTIONAL_ID", producer[0]), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ):
            guard.denied = {denied}
            assert commit_in(desk, producer, "g", (topic, 0, 1)) == {(topic.name, 0): code}
