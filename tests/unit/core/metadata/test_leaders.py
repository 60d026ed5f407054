from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from tests.unit.core.metadata.cluster import Cluster

PREFERRED, UNCLEAN = 0, 1


def elect(cluster: Cluster, kind: int, *asked: tuple[str, int], **overrides: Any) -> Any:
    topics = tuple(ElectLeadersRequest.TopicPartitions(name, (number,)) for name, number in asked)
    return cluster.submit(ElectLeadersRequest(kind, topics or None), **overrides)


def codes(reply: Any) -> list[int]:
    return [each.error_code for topic in reply.replica_election_results for each in topic.partition_result]


def led_by_another(three: Cluster) -> bytes:
    """A topic whose preferred leader went and came back."""
    topic_id = three.create("moved", replicas=3)
    first = three.image.topic_by_id(topic_id).partitions[0].replicas[0]
    three.heartbeat(first, want_fence=True)
    three.heartbeat(first)
    return topic_id


def test_the_first_replica_leads_again_after_a_preferred_election(three: Cluster):
    topic_id = led_by_another(three)
    before = three.image.topic_by_id(topic_id).partitions[0]
    three.in_sync("moved", *before.replicas)
    assert before.leader != before.replicas[0]
    assert codes(elect(three, PREFERRED, ("moved", 0))) == [0]
    after = three.image.topic_by_id(topic_id).partitions[0]
    assert (after.leader, after.leader_epoch) == (after.replicas[0], before.leader_epoch + 1)


def test_a_preferred_leader_that_is_not_in_sync_is_not_available(three: Cluster):
    led_by_another(three)
    assert codes(elect(three, PREFERRED, ("moved", 0))) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_nothing_is_elected_where_the_right_one_leads(cluster: Cluster):
    cluster.create("there")
    end_offset = cluster.end_offset
    for kind in (PREFERRED, UNCLEAN):
        answer = elect(cluster, kind, ("there", 0)).replica_election_results[0].partition_result[0]
        assert answer.error_code == ErrorCode.ELECTION_NOT_NEEDED
        assert answer.error_message == "Leader election not needed for topic partition."
    assert cluster.end_offset == end_offset


def test_of_all_partitions_those_with_the_right_leader_are_left_out(cluster: Cluster):
    cluster.create("there", partitions=3)
    reply = elect(cluster, PREFERRED)
    assert [(each.topic, each.partition_result) for each in reply.replica_election_results] == [("there", ())]


def test_what_is_not_there_has_no_leader(cluster: Cluster):
    cluster.create("there")
    reply = elect(cluster, PREFERRED, ("there", 9), ("missing", 0))
    assert codes(reply) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    texts = [topic.partition_result[0].error_message for topic in reply.replica_election_results]
    assert texts == ["No such partition as there-9", "No such topic as missing"]


def test_an_unknown_type_of_election_is_refused_for_everything(cluster: Cluster):
    cluster.create("there")
    reply = elect(cluster, 5, ("there", 0))
    assert (reply.error_code, codes(reply)) == (ErrorCode.INVALID_REQUEST, [ErrorCode.INVALID_REQUEST])


def test_an_unclean_election_takes_whoever_lives(three: Cluster):
    topic_id = three.create("lost", replicas=2)
    partition = three.image.topic_by_id(topic_id).partitions[0]
    follower, leader = partition.replicas[1], partition.replicas[0]
    for broker in (follower, leader):
        three.heartbeat(broker, want_fence=True)
    three.heartbeat(follower)
    assert three.image.topic_by_id(topic_id).partitions[0].leader == -1
    assert codes(elect(three, UNCLEAN, ("lost", 0))) == [0]
    after = three.image.topic_by_id(topic_id).partitions[0]
    assert (after.leader, after.isr, after.leader_recovery_state) == (follower, (follower,), 1)


def test_an_unclean_election_without_anybody_has_no_result(cluster: Cluster):
    cluster.create("lost")
    cluster.heartbeat(want_fence=True)
    assert codes(elect(cluster, UNCLEAN, ("lost", 0))) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_elections_need_the_right_to_alter_the_cluster(cluster: Cluster):
    cluster.create("there")
    reply = elect(cluster, PREFERRED, ("there", 0), authorize=lambda *asked: False)
    assert (reply.error_code, codes(reply)) == (31, [31])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_can_be_answered(cluster: Cluster, version: int):
    cluster.create("there")
    assert codes(elect(cluster, PREFERRED, ("there", 0), api_version=version)) == [84]
