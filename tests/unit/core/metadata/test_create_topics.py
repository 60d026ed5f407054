from typing import Any

import pytest

from ottla.core.metadata.image import TOPIC
from ottla.core.metadata.uuids import NO_ID
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.cluster_metadata import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from tests.unit.core.metadata.cluster import Cluster, uuid

Topic = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig
Assignment = CreateTopicsRequest.CreatableReplicaAssignment


def request(*topics: Any, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics, validate_only=validate_only)


def errors(reply: CreateTopicsResponse) -> dict[str, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in reply.topics}


def assigned(*partitions: tuple[int, list[int]], **fields: int) -> Any:
    return Topic(
        "t",
        fields.get("num_partitions", -1),
        fields.get("replication_factor", -1),
        tuple(Assignment(number, tuple(brokers)) for number, brokers in partitions),
    )


def test_a_topic_is_one_batch_of_topic_configs_and_partitions(cluster: Cluster):
    result = cluster.ask(
        request(Topic("t", 2, 1, configs=(Config("retention.ms", "5"), Config("min.insync.replicas", "1"))))
    )
    kinds = [type(record.message) for record in result.records]
    assert kinds == [TopicRecord, ConfigRecord, ConfigRecord, ClearElrRecord, PartitionRecord, PartitionRecord]
    assert [record.version for record in result.records] == [0, 0, 0, 0, 2, 2]
    partition = result.records[-1].message
    assert (partition.partition_id, partition.replicas, partition.isr, partition.leader) == (1, (1,), (1,), 1)
    assert (partition.leader_epoch, partition.partition_epoch, partition.directories) == (0, 0, (uuid(201),))
    assert len(cluster.append(result)) == 6


def test_the_reply_tells_what_was_made(cluster: Cluster):
    reply = cluster.submit(request(Topic("t", 3, 1, configs=(Config("retention.ms", "5"),))))
    (topic,) = reply.topics
    assert (topic.error_code, topic.error_message, topic.num_partitions, topic.replication_factor) == (0, None, 3, 1)
    assert topic.topic_id == cluster.image.topics_by_name["t"].topic_id != NO_ID
    assert {config.name: (config.value, config.config_source) for config in topic.configs} == {
        "cleanup.policy": ("delete", 5),
        "min.insync.replicas": ("1", 3),  # the cluster's, since ELR is on
        "retention.ms": ("5", 1),
        "unclean.leader.election.enable": ("false", 5),
    }
    assert [config.name for config in topic.configs] == sorted(config.name for config in topic.configs)
    assert cluster.image.configs(TOPIC, "t") == {"retention.ms": "5"}


def test_minus_one_stands_for_the_defaults(empty_cluster: Cluster):
    cluster = Cluster(settings={"num_partitions": 4, "default_replication_factor": 2}).with_brokers(1, 2)
    (topic,) = cluster.submit(request(Topic("t", -1, -1))).topics
    assert (topic.num_partitions, topic.replication_factor) == (4, 2)
    cluster.check_law()


def test_only_validating_creates_nothing_and_still_gives_an_id(cluster: Cluster):
    result = cluster.ask(request(Topic("t", 1, 1), validate_only=True))
    assert result.records == ()
    assert result.reply.topics[0].topic_id != NO_ID
    assert result.reply.topics[0].num_partitions == 1


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (Topic("there", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (Topic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Topic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Topic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Topic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Topic("dot_ted", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Topic("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (Topic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (Topic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (Topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Topic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Topic("t", 1, 1, configs=(Config("nonsense", "1"),)), ErrorCode.INVALID_CONFIG),
        (Topic("t", 1, 1, configs=(Config("retention.ms", "soon"),)), ErrorCode.INVALID_CONFIG),
        (Topic("t", 1, 1, configs=(Config("retention.ms", None),)), ErrorCode.INVALID_CONFIG),
        (Topic("t", 1, 1, configs=(Config("retention.ms", "1" * 32_768),)), ErrorCode.INVALID_CONFIG),
        (Topic("t", 0, 1, configs=(Config("nonsense", "1"),)), ErrorCode.INVALID_CONFIG),
        (assigned((0, [1]), num_partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned((0, [1]), replication_factor=1), ErrorCode.INVALID_REQUEST),
        (assigned((0, [7])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else value.name[:12],
)
def test_what_cannot_be_is_refused(cluster: Cluster, topic: Any, code: ErrorCode):
    cluster.create("there")
    cluster.create("dot.ted")
    result = cluster.ask(request(topic))
    (refused,) = result.reply.topics
    assert ErrorCode(refused.error_code) is code
    assert refused.error_message
    assert (refused.num_partitions, refused.replication_factor, refused.configs) == (-1, -1, ())
    assert refused.topic_id == NO_ID
    assert result.records == ()


def test_an_existing_name_wins_over_colliding_with_itself(cluster: Cluster):
    cluster.create("a.b")
    assert errors(cluster.submit(request(Topic("a.b", 1, 1)))) == {"a.b": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_a_name_collides_no_more_once_the_other_is_gone(cluster: Cluster):
    cluster.create("a.b")
    cluster.submit(DeleteTopicsRequest(topic_names=("a.b",)), api_version=5)
    assert errors(cluster.submit(request(Topic("a_b", 1, 1)))) == {"a_b": ErrorCode.NONE}


def test_names_without_dots_and_underscores_never_collide(cluster: Cluster):
    cluster.create("a-b")
    assert errors(cluster.submit(request(Topic("a.b", 1, 1), Topic("ab", 1, 1)))) == {
        "a.b": ErrorCode.NONE,
        "ab": ErrorCode.NONE,
    }


def test_a_name_given_twice_fails_once_and_the_others_live(cluster: Cluster):
    reply = cluster.submit(request(Topic("t", 1, 1), Topic("u", 1, 1), Topic("t", 2, 1)))
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [("t", ErrorCode.INVALID_REQUEST), ("u", 0)]
    assert set(cluster.image.topics_by_name) == {"u"}


def test_a_failing_topic_leaves_the_others_alone(cluster: Cluster):
    reply = cluster.submit(request(Topic("bad", 0, 1), Topic("good", 1, 1)))
    assert errors(reply) == {"bad": ErrorCode.INVALID_PARTITIONS, "good": ErrorCode.NONE}
    assert set(cluster.image.topics_by_name) == {"good"}


def test_too_many_partitions_fail_the_whole_request(cluster: Cluster):
    reply = cluster.ask(request(Topic("small", 1, 1), Topic("large", 10_000, 1))).reply
    assert errors(reply) == {"small": ErrorCode.POLICY_VIOLATION, "large": ErrorCode.POLICY_VIOLATION}


def test_ten_thousand_records_are_the_most_a_batch_takes():
    cluster = Cluster().with_brokers(1)
    reply = cluster.ask(request(Topic("t", 10_000, 1))).reply  # and one for the topic
    assert errors(reply) == {"t": ErrorCode.POLICY_VIOLATION}
    assert errors(cluster.submit(request(Topic("t", 9_999, 1)))) == {"t": ErrorCode.NONE}


def test_placement_by_hand(three: Cluster):
    reply = three.submit(request(assigned((1, [3, 1]), (0, [2, 3]))))
    assert (reply.topics[0].error_code, reply.topics[0].num_partitions, reply.topics[0].replication_factor) == (0, 2, 2)
    partitions = three.image.topics_by_name["t"].partitions
    assert [partitions[number].replicas for number in (0, 1)] == [(2, 3), (3, 1)]
    assert [partitions[number].leader for number in (0, 1)] == [2, 3]


def test_uneven_placement_by_hand_is_refused(three: Cluster):
    reply = three.submit(request(assigned((0, [1, 2]), (1, [3]))))
    assert errors(reply) == {"t": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_fenced_brokers_are_replicas_but_not_in_sync(three: Cluster):
    three.heartbeat(2, want_fence=True)
    three.submit(request(assigned((0, [2, 3]))))
    partition = three.image.topics_by_name["t"].partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 3), (3,), 3)
    assert errors(three.submit(request(Topic("u", 1, 3)))) == {"u": ErrorCode.NONE}


def test_only_fenced_brokers_are_too_few(cluster: Cluster):
    cluster.heartbeat(1, want_fence=True)
    assert errors(cluster.submit(request(Topic("t", 1, 1)))) == {"t": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert errors(cluster.submit(request(assigned((0, [1]))))) == {"t": ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_who_may_not_create_is_told_nothing_else(cluster: Cluster):
    cluster.create("there")

    def authorize(operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation, kind, name) == (Operation.CREATE, ResourceType.TOPIC, "mine")

    reply = cluster.submit(request(Topic("there", 1, 1), Topic("mine", 1, 1)), authorize=authorize)
    assert errors(reply) == {"there": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "mine": ErrorCode.NONE}
    mine = reply.topics[1]
    assert mine.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (mine.num_partitions, mine.replication_factor, mine.configs) == (-1, -1, ())


def test_a_quota_refuses_single_topics(cluster: Cluster):
    left = 3

    def charge(partition_count: int) -> bool:
        nonlocal left
        left -= partition_count
        return left >= 0

    reply = cluster.submit(request(Topic("a", 2, 1), Topic("b", 2, 1)), charge=charge)
    assert errors(reply) == {"a": ErrorCode.NONE, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}


def test_an_id_that_tools_would_take_for_an_option_is_drawn_again(cluster: Cluster):
    draws = iter([b"\xf8" + bytes(15), bytes(15) + b"\x05", uuid(77)])
    cluster.submit(request(Topic("t", 1, 1)), new_uuid=lambda: next(draws))
    assert cluster.image.topics_by_name["t"].topic_id == uuid(77)
