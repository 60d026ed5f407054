from typing import Any

import pytest

from ottla.core.metadata.context import Result
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import PartitionChangeRecord
from ottla.wire.types.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.unit.core.metadata.cluster import Cluster, uuid

Topic = CreatePartitionsRequest.CreatePartitionsTopic


def grown(name: str, count: int, *assignments: tuple[int, ...]) -> Any:
    given = tuple(CreatePartitionsRequest.CreatePartitionsAssignment(brokers) for brokers in assignments)
    return Topic(name, count, given or None)


def request(*topics: Any, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics, validate_only=validate_only)


def errors(reply: CreatePartitionsResponse) -> dict[str, ErrorCode]:
    return {result.name: ErrorCode(result.error_code) for result in reply.results}


def test_new_partitions_continue_the_numbers_and_keep_the_replication_factor(three: Cluster):
    three.create("t", 2, 2)
    assert errors(three.submit(request(grown("t", 5)))) == {"t": ErrorCode.NONE}
    partitions = three.image.topics_by_name["t"].partitions
    assert sorted(partitions) == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in partitions.values()} == {2}
    assert partitions[4].directories == tuple(uuid(200 + replica) for replica in partitions[4].replicas)


def test_placement_by_hand(three: Cluster):
    three.create("t", 1, 2)
    assert errors(three.submit(request(grown("t", 3, (3, 1), (2, 3))))) == {"t": ErrorCode.NONE}
    partitions = three.image.topics_by_name["t"].partitions
    assert [partitions[number].replicas for number in (1, 2)] == [(3, 1), (2, 3)]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (grown("t", 2), ErrorCode.INVALID_PARTITIONS),
        (grown("t", 1), ErrorCode.INVALID_PARTITIONS),
        (grown("t", -1), ErrorCode.INVALID_PARTITIONS),
        (grown("u", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grown("t", 4, (1,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, (1,), (1,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, (1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, (7,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 3, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("t", 10_003), ErrorCode.POLICY_VIOLATION),
        (grown("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_is_refused(three: Cluster, topic: Any, code: ErrorCode):
    three.create("t", 2)
    result = three.ask(request(topic))
    assert errors(result.reply) == {topic.name: code}
    assert result.records == ()


def test_a_topic_given_twice_fails_once(cluster: Cluster):
    cluster.create("t")
    reply = cluster.submit(request(grown("t", 2), grown("t", 3)))
    assert [(result.name, result.error_code) for result in reply.results] == [("t", ErrorCode.INVALID_REQUEST)]


def test_only_validating_adds_nothing(cluster: Cluster):
    cluster.create("t")
    result = cluster.ask(request(grown("t", 2), validate_only=True))
    assert (errors(result.reply), result.records) == ({"t": ErrorCode.NONE}, ())


def test_without_the_right_to_alter(cluster: Cluster):
    cluster.create("t")
    reply = cluster.submit(request(grown("t", 2)), authorize=lambda operation, *_: operation is not Operation.ALTER)
    assert errors(reply) == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_quota_counts_the_additional_ones(cluster: Cluster):
    cluster.create("t", 2)
    charged: list[int] = []

    def charge(partition_count: int) -> bool:
        charged.append(partition_count)
        return False

    assert errors(cluster.submit(request(grown("t", 5)), charge=charge)) == {"t": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert charged == [3]


def test_no_broker_that_could_take_them(cluster: Cluster):
    cluster.create("t")
    cluster.heartbeat(want_fence=True)
    assert errors(cluster.submit(request(grown("t", 2)))) == {"t": ErrorCode.INVALID_REPLICATION_FACTOR}


# --- ListPartitionReassignments


def test_nothing_is_on_its_way(cluster: Cluster):
    cluster.create("t")
    reply = cluster.submit(ListPartitionReassignmentsRequest())
    assert (reply.error_code, reply.error_message, reply.topics) == (0, None, ())


def test_moves_from_another_controllers_log_are_listed(three: Cluster):
    topic_id = three.create("t", 2, 1)
    moving = PartitionChangeRecord(1, topic_id, replicas=(1, 2), adding_replicas=(2,), removing_replicas=(1,))
    three.append(Result((Versioned(moving, 2),), None))
    kind = ListPartitionReassignmentsRequest
    some = kind.ListPartitionReassignmentsTopics
    for asked in (None, (some("t", (0, 1)), some("u", (0,)))):
        (topic,) = three.submit(kind(topics=asked)).topics
        assert topic.name == "t"
        (partition,) = topic.partitions
        assert (partition.partition_index, partition.replicas) == (1, (1, 2))
        assert (partition.adding_replicas, partition.removing_replicas) == ((2,), (1,))
    assert three.submit(kind(topics=(some("t", (0,)),))).topics == ()


def test_listing_moves_needs_the_right_to_describe(cluster: Cluster):
    reply = cluster.submit(ListPartitionReassignmentsRequest(), authorize=lambda *_: False)
    assert reply.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
