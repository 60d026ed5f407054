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
from tests.component.broker.offset_requests import NOWHERE, Guard, commit, delete, fetch, found, new_group
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient, Topic, running_node

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


def until_ready(client: RawClient, request: object, version: int) -> Any:
    """Apache Kafka needs a moment for its first transaction, and between two of them."""
    for _ in range(READY_ATTEMPTS):
        answer = client.ask(request, version)
        if answer.error_code not in NOT_READY:
            return answer
    raise AssertionError(f"{type(request).__name__} is not answered: {answer}")


def new_producer(client: RawClient) -> Producer:
    name = f"tx-{next(_serial)}"
    client.ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(name,)), 6)  # makes the topic, if need be
    answer = until_ready(client, InitProducerIdRequest(name, 60_000), 5)
    assert answer.error_code == NONE
    return Producer(name, answer.producer_id, answer.producer_epoch)


def add_group(client: RawClient, producer: Producer, group: str) -> None:
    answer = until_ready(client, AddOffsetsToTxnRequest(*producer, group), 3)
    assert answer.error_code == NONE


def end(client: RawClient, producer: Producer, *, committed: bool) -> Producer:
    """Gives the producer of the next transaction."""
    answer = until_ready(client, EndTxnRequest(*producer, committed), 5)
    assert answer.error_code == NONE
    return Producer(producer.transactional_id, answer.producer_id, answer.producer_epoch)


def commit_in(
    client: RawClient, producer: Producer, group: str, *offsets: tuple[Any, ...], version: int = 5, **fields: Any
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
    answer = client.ask(kind(transactional_id, group, producer_id, epoch, topics=named, **fields), version)
    names = {topic.topic_id: topic.name for topic in topics}
    return {
        (topic.name or names[topic.topic_id], each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def stable_offset(client: RawClient, group: str, topic: Topic) -> int:
    """Waits for the marker, which Apache Kafka writes after it has answered EndTxn."""
    for _ in range(READY_ATTEMPTS):
        offset, _, _, code = found(fetch(client, group, {topic: [0]}, 7, require_stable=True))[(topic.name, 0)]
        if code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            return offset
    raise AssertionError("the transaction does not end")


@pytest.mark.parametrize("version", range(VERSIONS[0], BY_ID_FROM))
def test_an_offset_appears_with_the_commit(client: RawClient, version: int):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    commit(client, group, (topic, 0, 1))
    if version < TOLD_BY_ITSELF_FROM:
        add_group(client, producer, group)
    assert commit_in(client, producer, group, (topic, 0, 2, "note"), version=version) == {(topic.name, 0): NONE}
    unstable = (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert found(fetch(client, group, {topic: [0]}, 7, require_stable=True)) == {(topic.name, 0): unstable}
    assert found(fetch(client, group, None, 7, require_stable=True)) == {(topic.name, 0): unstable}
    assert found(fetch(client, group, {topic: [0]}, 7)) == {(topic.name, 0): (1, -1, "", NONE)}
    end(client, producer, committed=True)
    assert stable_offset(client, group, topic) == 2


def test_an_abort_leaves_what_was_there(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    commit(client, group, (topic, 0, 1))
    commit_in(client, producer, group, (topic, 0, 2))
    end(client, producer, committed=False)
    assert stable_offset(client, group, topic) == 1


def test_a_later_plain_commit_is_newer_than_the_transaction(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    commit_in(client, producer, group, (topic, 0, 2))
    commit(client, group, (topic, 0, 5))
    end(client, producer, committed=True)
    assert stable_offset(client, group, topic) == 5


def test_a_deleted_offset_does_not_come_back(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    commit_in(client, producer, group, (topic, 0, 2))
    assert delete(client, group, {topic.name: [0]}).topics[0].partitions[0].error_code == NONE
    end(client, producer, committed=True)
    assert stable_offset(client, group, topic) == -1


def test_one_transaction_after_the_other(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    for number in range(5):
        for _ in range(READY_ATTEMPTS):
            answer = commit_in(client, producer, group, (topic, 0, number))
            if answer != {(topic.name, 0): ErrorCode.CONCURRENT_TRANSACTIONS}:
                break
        assert answer == {(topic.name, 0): NONE}
        producer = end(client, producer, committed=number % 2 == 0)
    assert stable_offset(client, group, topic) == 4


@pytest.mark.parametrize(
    ("version", "code"),
    [(0, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_before_version_5_the_transaction_must_know_the_group(client: RawClient, version: int, code: ErrorCode):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    assert commit_in(client, producer, group, (topic, 0, 2), version=version) == {(topic.name, 0): code}
    assert found(fetch(client, group, {topic: [0]}, 7, require_stable=True))[(topic.name, 0)][3] is NONE


def test_an_older_producer_is_fenced(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    until_ready(client, InitProducerIdRequest(producer.transactional_id, 60_000), 5)
    answer = commit_in(client, producer, group, (topic, 0, 2))
    assert answer == {(topic.name, 0): ErrorCode.INVALID_PRODUCER_EPOCH}


def test_an_unknown_producer_is_refused(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    stranger = producer._replace(producer_id=999_999)
    answer = commit_in(client, stranger, group, (topic, 0, 2))
    assert answer == {(topic.name, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_the_group_says_who_may_commit(client: RawClient):
    topic, group, producer = client.topic(), new_group(client), new_producer(client)
    member = {"member_id": "m", "generation_id_or_member_epoch": 0}
    answer = commit_in(client, producer, group, (topic, 0, 2), **member)
    assert answer == {(topic.name, 0): ErrorCode.ILLEGAL_GENERATION}  # there is no such group
    commit(client, group, (topic, 0, 1))
    answer = commit_in(client, producer, group, (topic, 0, 2), **member)
    assert answer == {(topic.name, 0): ErrorCode.UNKNOWN_MEMBER_ID}


def test_what_cannot_be_committed_does_not_hold_up_the_rest(client: RawClient):
    topic, group, producer = client.topic(2), new_group(client), new_producer(client)
    offsets = [(topic, 0, 1), (topic, 2, 1), (topic, 1, 1, "x" * 4097), (NOWHERE, 0, 1)]
    assert commit_in(client, producer, group, *offsets) == {
        (topic.name, 0): NONE,
        (topic.name, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_group_needs_a_name(client: RawClient):
    topic, producer = client.topic(), new_producer(client)
    assert commit_in(client, producer, "", (topic, 0, 1)) == {(topic.name, 0): ErrorCode.INVALID_GROUP_ID}


# --- of a node of ours ------------------------------------------------------------------------------------------------


def test_version_6_names_topics_by_id(tmp_path: Path):
    with running_node(tmp_path) as running:
        client = running.client
        topic, producer = client.topic(), new_producer(client)
        answer = commit_in(client, producer, "g", (topic, 0, 2), (NOWHERE, 0, 1), version=6)
        assert answer == {(topic.name, 0): NONE, (NOWHERE.name, 0): ErrorCode.UNKNOWN_TOPIC_ID}
        end(client, producer, committed=True)
        assert stable_offset(client, "g", topic) == 2


def test_the_first_commit_makes_the_topic_of_offsets(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic, producer = running.client.topic(), new_producer(running.client)
        assert running.node.image.topics_by_name.get("__consumer_offsets") is None
        assert commit_in(running.client, producer, "g", (topic, 0, 2)) == {(topic.name, 0): NONE}


def test_an_open_transaction_survives_a_restart(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic, producer = running.client.topic(), new_producer(running.client)
        commit_in(running.client, producer, "g", (topic, 0, 2))
    with running_node(tmp_path) as running:
        code = found(fetch(running.client, "g", {topic: [0]}, 7, require_stable=True))[(topic.name, 0)][3]
        assert code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        end(running.client, producer, committed=True)
        assert stable_offset(running.client, "g", topic) == 2


def test_access_to_the_transaction_the_group_and_the_topic(tmp_path: Path):
    guard = Guard()
    with running_node(tmp_path, authorizer=guard) as running:
        client = running.client
        topic, producer = client.topic(), new_producer(client)
        for denied, code in (
            (("READ", "TOPIC", topic.name), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            (("READ", "GROUP", "g"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
            (("WRITE", "TRANSACTIONAL_ID", producer[0]), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ):
            guard.denied = {denied}
            assert commit_in(client, producer, "g", (topic, 0, 1)) == {(topic.name, 0): code}
