"""CreateTopics, DeleteTopics, CreatePartitions, ListPartitionReassignments, InitProducerId, over the wire."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from ottla.broker.controller.producer_ids import PREFETCH_AT
from ottla.core.metadata.producer_ids import BLOCK_SIZE
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    InitProducerIdRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)
from tests.component.broker.raw_client import RawClient, RunningNode, running_node

_names = (f"made{number}" for number in count())
NO_ID = bytes(16)
ATTEMPTS = 1000


def create(
    client: RawClient, *topics: CreateTopicsRequest.CreatableTopic, version: int = 7, validate_only: bool = False
) -> Any:
    answer = client.ask(CreateTopicsRequest(topics, 10_000, validate_only), version)
    return {topic.name: topic for topic in answer.topics}


def topic(
    name: str, partitions: int = 1, replicas: int = 1, **configs: str | None
) -> CreateTopicsRequest.CreatableTopic:
    kind = CreateTopicsRequest
    settings = tuple(kind.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
    return kind.CreatableTopic(name, partitions, replicas, configs=settings)


def assigned(
    name: str, *brokers: tuple[int, tuple[int, ...]], partitions: int = -1
) -> CreateTopicsRequest.CreatableTopic:
    kind = CreateTopicsRequest
    return kind.CreatableTopic(name, partitions, -1, tuple(kind.CreatableReplicaAssignment(*each) for each in brokers))


def partition_count(client: RawClient, name: str, expected: int) -> int:
    """How many partitions a topic has; 0 without it. The original's brokers learn late of what its controller did."""
    asked = MetadataRequest((MetadataRequest.MetadataRequestTopic(name=name),), False)
    for _ in range(ATTEMPTS):
        found = len(client.ask(asked, 13).topics[0].partitions)
        if found == expected:
            break
    return found


# --- CreateTopics -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(client: RawClient, version: int):
    name = next(_names)
    made = create(client, topic(name, 2), version=version)[name]
    assert made.error_code == 0
    assert partition_count(client, name, 2) == 2
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (2, 1)
        assert len(made.configs) == 33
        assert [each.name for each in made.configs] == sorted(each.name for each in made.configs)
    if version >= 7:
        assert made.topic_id != NO_ID


def test_defaults_stand_for_minus_one(client: RawClient):
    name = next(_names)
    made = create(client, topic(name, -1, -1))[name]
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 1, 1)


def test_a_setting_is_told_with_where_it_comes_from(client: RawClient):
    name = next(_names)
    made = create(client, topic(name, retention_ms="1234"))[name]
    configs = {each.name: (each.value, each.config_source, each.read_only, each.is_sensitive) for each in made.configs}
    assert configs["retention.ms"] == ("1234", 1, False, False)
    assert configs["segment.bytes"] == ("1073741824", 5, False, False)
    assert configs["min.insync.replicas"] == ("1", 3, False, False), "formatting has set it for the cluster"


def test_to_validate_is_not_to_create(client: RawClient):
    name = next(_names)
    assert create(client, topic(name, 3), validate_only=True)[name].num_partitions == 3
    assert partition_count(client, name, 0) == 0


def test_what_is_refused(client: RawClient):
    there = client.topic().name
    names = [next(_names) for _ in range(12)]
    answers = create(
        client,
        topic(there),
        topic("a b"),
        topic(names[0], 0),
        topic(names[1], -2),
        topic(names[2], 1, 0),
        topic(names[3], 1, 2),
        topic(names[4], nonsense="1"),
        topic(names[5], retention_ms="soon"),
        topic(names[6], retention_ms=None),
        assigned(names[7], (0, (7,))),
        assigned(names[8], (1, (1,))),
        assigned(names[9], (0, (1,)), partitions=1),
        assigned(names[10], (0, (1, 1))),
        topic("__cluster_metadata"),
        topic(names[11]),
    )
    assert {name: answers[name].error_code for name in names} == {
        names[0]: ErrorCode.INVALID_PARTITIONS,
        names[1]: ErrorCode.INVALID_PARTITIONS,
        names[2]: ErrorCode.INVALID_REPLICATION_FACTOR,
        names[3]: ErrorCode.INVALID_REPLICATION_FACTOR,
        names[4]: ErrorCode.INVALID_CONFIG,
        names[5]: ErrorCode.INVALID_CONFIG,
        names[6]: ErrorCode.INVALID_CONFIG,
        names[7]: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        names[8]: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        names[9]: ErrorCode.INVALID_REQUEST,
        names[10]: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        names[11]: ErrorCode.NONE,
    }
    assert answers[there].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert answers["a b"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answers["__cluster_metadata"].error_code == ErrorCode.INVALID_REQUEST
    failed = answers[names[0]]
    assert (failed.num_partitions, failed.replication_factor, failed.topic_id) == (-1, -1, NO_ID)
    assert not failed.configs


def test_names_that_metrics_would_mix_up_collide(client: RawClient):
    one = next(_names)
    assert create(client, topic(f"{one}.x"))[f"{one}.x"].error_code == 0
    assert create(client, topic(f"{one}_x"))[f"{one}_x"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_named_twice_is_refused_once(client: RawClient):
    name = next(_names)
    answer = client.ask(CreateTopicsRequest((topic(name), topic(name)), 10_000), 7)
    assert [(each.name, each.error_code) for each in answer.topics] == [(name, ErrorCode.INVALID_REQUEST)]


def test_too_many_partitions_are_refused_as_a_whole(client: RawClient):
    one, two = next(_names), next(_names)
    answers = create(client, topic(one, 10_000), topic(two))
    assert {each.error_code for each in answers.values()} == {ErrorCode.POLICY_VIOLATION}


# --- DeleteTopics -----------------------------------------------------------------------------------------------------


def delete(
    client: RawClient, *asked: tuple[str | None, bytes], version: int = 6
) -> list[tuple[str | None, bytes, int]]:
    kind = DeleteTopicsRequest
    if version < 6:
        request = kind(topic_names=tuple(name or "" for name, _ in asked), timeout_ms=10_000)
    else:
        request = kind(topics=tuple(kind.DeleteTopicState(*each) for each in asked), timeout_ms=10_000)
    answer = client.ask(request, version)
    return sorted(((each.name, each.topic_id, each.error_code) for each in answer.responses), key=str)


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(client: RawClient, version: int):
    made = client.topic()
    ((name, topic_id, code),) = delete(client, (made.name, NO_ID), version=version)
    assert (name, code) == (made.name, 0)
    assert topic_id == (made.topic_id if version >= 6 else NO_ID)
    assert partition_count(client, made.name, 0) == 0


def test_topics_are_deleted_by_id(client: RawClient):
    made = client.topic()
    assert delete(client, (None, made.topic_id)) == [(made.name, made.topic_id, 0)]
    assert partition_count(client, made.name, 0) == 0
    assert delete(client, (None, made.topic_id)) == [(None, made.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_what_cannot_be_deleted(client: RawClient):
    made = client.topic()
    assert delete(client, ("nowhere", NO_ID)) == [("nowhere", NO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert [each[2] for each in delete(client, (made.name, made.topic_id))] == [ErrorCode.INVALID_REQUEST]
    assert [each[2] for each in delete(client, (None, NO_ID))] == [ErrorCode.INVALID_REQUEST]
    assert {each[2] for each in delete(client, (made.name, NO_ID), (made.name, NO_ID))} == {ErrorCode.INVALID_REQUEST}
    assert {each[2] for each in delete(client, (made.name, NO_ID), (None, made.topic_id))} == {
        ErrorCode.INVALID_REQUEST
    }
    assert partition_count(client, made.name, 1) == 1


def test_deletion_can_be_switched_off(tmp_path_factory: pytest.TempPathFactory):
    with running_node(tmp_path_factory.mktemp("keep"), delete_topic_enable=False) as running:
        made = running.client.topic()
        codes = [delete(running.client, (made.name, NO_ID), version=version)[0][2] for version in (2, 3, 6)]
        disabled = ErrorCode.TOPIC_DELETION_DISABLED
        assert codes == [ErrorCode.INVALID_REQUEST, disabled, disabled]
        assert partition_count(running.client, made.name, 1) == 1


# --- CreatePartitions -------------------------------------------------------------------------------------------------


def grow(
    client: RawClient, name: str, total: int, *brokers: tuple[int, ...], version: int = 3, validate_only: bool = False
) -> int:
    kind = CreatePartitionsRequest
    assignments = tuple(kind.CreatePartitionsAssignment(each) for each in brokers) or None
    request = kind((kind.CreatePartitionsTopic(name, total, assignments),), 10_000, validate_only)
    (result,) = client.ask(request, version).results
    assert result.name == name
    return int(result.error_code)


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(client: RawClient, version: int):
    name = client.topic().name
    assert grow(client, name, 3, version=version) == 0
    assert partition_count(client, name, 3) == 3


def test_partitions_that_cannot_be_added(client: RawClient):
    name = client.topic(partitions=3).name
    assert grow(client, name, 3) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, name, 2) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, "nowhere", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(client, name, 5, (1,)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(client, name, 4, (9,)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(client, name, 4, validate_only=True) == 0
    assert partition_count(client, name, 3) == 3
    assert grow(client, name, 4, (1,)) == 0
    assert partition_count(client, name, 4) == 4


def test_nothing_is_on_its_way_elsewhere(client: RawClient):
    made = client.topic()
    kind = ListPartitionReassignmentsRequest
    for request in (kind(), kind(topics=(kind.ListPartitionReassignmentsTopics(made.name, (0,)),))):
        answer = client.ask(request, 0)
        assert (answer.error_code, answer.topics) == (0, ())


# --- InitProducerId ---------------------------------------------------------------------------------------------------


def take_id(client: RawClient, request: InitProducerIdRequest, version: int = 5) -> Any:
    """The answer; the original has no id ready for the first who asks."""
    for _ in range(ATTEMPTS):
        answer = client.ask(request, version)
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    return answer


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(client: RawClient, version: int):
    answers = [take_id(client, InitProducerIdRequest(None, 0), version) for _ in range(3)]
    assert {(each.error_code, each.producer_epoch) for each in answers} == {(0, 0)}
    assert len({each.producer_id for each in answers}) == 3


def test_a_producer_that_names_an_old_id_gets_a_new_one(client: RawClient):
    first = take_id(client, InitProducerIdRequest(None, 0))
    again = take_id(client, InitProducerIdRequest(None, 0, first.producer_id, first.producer_epoch))
    assert (again.error_code, again.producer_epoch) == (0, 0)
    assert again.producer_id != first.producer_id


def test_producers_that_are_refused(client: RawClient):
    for request in (
        InitProducerIdRequest("", 1000),
        InitProducerIdRequest(None, 1000, producer_id=5),
        InitProducerIdRequest(None, 1000, producer_epoch=5),
    ):
        answer = client.ask(request, 5)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_no_id_is_given_out_twice_whatever_happens(tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("ids")

    def take(running: RunningNode, number: int) -> list[int]:
        connection = running.client.connection
        sent = [connection.send(InitProducerIdRequest(None, 0), 5) for _ in range(number)]
        return [connection.receive(22, 5, correlation_id).producer_id for correlation_id in sent]

    with running_node(directory) as running:
        taken = take(running, 2 * BLOCK_SIZE - PREFETCH_AT)
        assert taken == list(range(len(taken))), "blocks follow each other"
        # The next block comes before it is needed.
        running.until(lambda: running.node.image.next_producer_id == 3 * BLOCK_SIZE)
    with running_node(directory) as running:
        assert take(running, 1) == [3 * BLOCK_SIZE], "what was left of a block is lost with the process"
