"""What is worth another attempt depends on the error and on how the broker was found."""

import pytest

from ottla.client.retry import RetryAction, Routing, codes_in, cure_for_all, retry_action
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddPartitionsToTxnResponse,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    ListOffsetsResponse,
    MetadataResponse,
    ProduceResponse,
)

E = ErrorCode


@pytest.mark.parametrize(
    ("code", "way", "cure"),
    [
        (E.NOT_LEADER_OR_FOLLOWER, Routing.LEADER, RetryAction.ASK_METADATA),
        (E.NOT_LEADER_OR_FOLLOWER, Routing.NODE, None),
        (E.UNKNOWN_TOPIC_OR_PARTITION, Routing.LEADER, RetryAction.ASK_METADATA),
        (E.UNKNOWN_TOPIC_OR_PARTITION, Routing.ANY, None),
        (E.NOT_COORDINATOR, Routing.COORDINATOR, RetryAction.FIND_COORDINATOR),
        (E.NOT_COORDINATOR, Routing.NODE, None),
        (E.COORDINATOR_LOAD_IN_PROGRESS, Routing.COORDINATOR, RetryAction.WAIT),
        (E.NOT_CONTROLLER, Routing.CONTROLLER, RetryAction.ASK_METADATA),
        (E.REQUEST_TIMED_OUT, Routing.NODE, RetryAction.WAIT),
        (E.THROTTLING_QUOTA_EXCEEDED, Routing.CONTROLLER, RetryAction.WAIT),
        (E.INVALID_FETCH_SESSION_EPOCH, Routing.LEADER, None),
        (E.TOPIC_ALREADY_EXISTS, Routing.CONTROLLER, None),
        (9999, Routing.ANY, None),
    ],
)
def test_cures(code: int, way: Routing, cure: RetryAction | None):
    assert retry_action(code, way) is cure


def test_what_is_cured_kafka_calls_retriable():
    assert [each for each in E for way in Routing if retry_action(each, way) and not each.retriable] == []


def produced(*codes: int) -> ProduceResponse:
    partitions = tuple(ProduceResponse.PartitionProduceResponse(index, code) for index, code in enumerate(codes))
    return ProduceResponse(responses=(ProduceResponse.TopicProduceResponse(partition_responses=partitions),))


def test_codes_are_found_wherever_they_stand():
    assert list(codes_in(HeartbeatResponse(error_code=27))) == [27]
    assert list(codes_in(produced(0, 6))) == [0, 6]
    assert list(codes_in(DescribeClusterResponse())) == [0]
    assert list(codes_in(None)) == []


def test_the_partitions_of_a_transaction_have_codes_of_another_name():
    kind = AddPartitionsToTxnResponse
    partition = kind.AddPartitionsToTxnPartitionResult(0, E.CONCURRENT_TRANSACTIONS)
    answer = kind(results_by_topic_v3_and_below=(kind.AddPartitionsToTxnTopicResult("t", (partition,)),))
    assert cure_for_all(answer, Routing.COORDINATOR) is RetryAction.WAIT


def test_a_zero_above_other_codes_says_nothing():
    found = FindCoordinatorResponse(coordinators=(FindCoordinatorResponse.Coordinator(error_code=15),))
    assert list(codes_in(found)) == [15]
    assert cure_for_all(found, Routing.COORDINATOR) is RetryAction.FIND_COORDINATOR


def test_what_went_well_in_part_is_not_asked_again():
    assert cure_for_all(produced(6, 6), Routing.LEADER) is RetryAction.ASK_METADATA
    assert cure_for_all(produced(6, 0), Routing.LEADER) is None
    assert cure_for_all(produced(6, 10), Routing.LEADER) is None


def test_an_answer_about_nothing_is_fine():
    assert cure_for_all(produced(), Routing.LEADER) is None
    assert cure_for_all(MetadataResponse(), Routing.ANY) is None


def test_waiting_gives_way_to_a_stronger_cure():
    assert cure_for_all(produced(7, 6), Routing.LEADER) is RetryAction.ASK_METADATA
    assert cure_for_all(produced(7, 7), Routing.LEADER) is RetryAction.WAIT


def test_every_kind_of_answer_can_be_judged():
    topic = DeleteTopicsResponse.DeletableTopicResult(error_code=41)
    assert cure_for_all(DeleteTopicsResponse(responses=(topic,)), Routing.CONTROLLER) is RetryAction.ASK_METADATA
    partition = ListOffsetsResponse.ListOffsetsPartitionResponse(error_code=78)
    topics = (ListOffsetsResponse.ListOffsetsTopicResponse(partitions=(partition,)),)
    assert cure_for_all(ListOffsetsResponse(topics=topics), Routing.LEADER) is RetryAction.ASK_METADATA
