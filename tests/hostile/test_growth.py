"""What a request costs does not depend on topics that it does not ask for. Costs are counted in calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.wire.types import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.component.broker.raw_client import (
    RawClient,
    RunningNode,
    Topic,
    batch,
    fetch_partition,
    fetch_request,
    produce_request,
    running_node,
)

MANY = 400
SPREAD = 1.1
"""A list that grows, or a dictionary, may cost a call now and then."""


def metadata(topic: Topic) -> object:
    return MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic.name),), False)


def list_offsets(topic: Topic) -> object:
    asked = (ListOffsetsRequest.ListOffsetsPartition(0, -1, -1),)
    return ListOffsetsRequest(-1, 0, (ListOffsetsRequest.ListOffsetsTopic(topic.name, asked),))


def describe_configs(topic: Topic) -> object:
    return DescribeConfigsRequest((DescribeConfigsRequest.DescribeConfigsResource(2, topic.name, ("retention.ms",)),))


def commit(topic: Topic) -> object:
    kind = OffsetCommitRequest
    offset = kind.OffsetCommitRequestPartition(0, 1, committed_metadata="")
    return kind("g", topics=(kind.OffsetCommitRequestTopic(topic.name, partitions=(offset,)),))


def fetch_offsets(topic: Topic) -> object:
    kind = OffsetFetchRequest
    topics = (kind.OffsetFetchRequestTopics(topic.name, partition_indexes=(0,)),)
    return kind(groups=(kind.OffsetFetchRequestGroup("g", topics=topics),))


def join(topic: Topic) -> object:
    return ConsumerGroupHeartbeatRequest(
        group_id=f"of-{topic.name}",
        member_id="m" * 22,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=(topic.name,),
        topic_partitions=(),
    )


def describe_topic(topic: Topic) -> object:
    return DescribeTopicPartitionsRequest((DescribeTopicPartitionsRequest.TopicRequest(topic.name),))


REQUESTS: dict[str, tuple[Callable[[Topic], object], int]] = {
    "Produce": (lambda topic: produce_request(topic, {0: batch(b"v")}), 13),
    "Fetch": (lambda topic: fetch_request(topic, fetch_partition(0, 0), session_epoch=-1), 17),
    "Metadata": (metadata, 12),
    "ListOffsets": (list_offsets, 9),
    "DescribeConfigs": (describe_configs, 4),
    "DescribeTopicPartitions": (describe_topic, 0),
    "OffsetCommit": (commit, 9),
    "OffsetFetch": (fetch_offsets, 9),
    "FindCoordinator": (lambda topic: FindCoordinatorRequest(key_type=0, coordinator_keys=(topic.name,)), 6),
    "Heartbeat": (lambda _: HeartbeatRequest(group_id="nobody"), 4),
    "ConsumerGroupHeartbeat": (join, 1),
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[int, int]]]:
    """Name of a request -> calls that it took with few topics, and with many."""
    with running_node(tmp_path_factory.mktemp("growth")) as running:
        few = count_all(running)
        create_many(running.client)
        many = count_all(running)
        yield {name: (few[name], many[name]) for name in REQUESTS}


def create_many(client: RawClient) -> None:
    kind = CreateTopicsRequest
    wanted = tuple(kind.CreatableTopic(f"other-{number}", 3, 1) for number in range(MANY))
    assert not any(topic.error_code for topic in client.ask(kind(wanted, 60_000), 7).topics)


def count_all(running: RunningNode) -> dict[str, int]:
    topic = running.client.topic()
    return {name: calls_of(running, make, topic, version) for name, (make, version) in REQUESTS.items()}


def calls_of(running: RunningNode, make: Callable[[Topic], object], topic: Topic, version: int) -> int:
    """The fewest of three: the first request may load something, and chores may come between."""
    return min(_calls_of_one(running, make(topic), version) for _ in range(3))


def _calls_of_one(running: RunningNode, request: object, version: int) -> int:
    calls = [0]

    def count(_frame: Any, event: str, _argument: Any) -> None:
        calls[0] += event == "call"

    running.change(lambda: sys.setprofile(count))
    running.client.ask(request, version)
    running.change(lambda: sys.setprofile(None))
    return calls[0]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_costs_the_same_whatever_else_there_is(name: str, counted: dict[str, tuple[int, int]]) -> None:
    few, many = counted[name]
    assert 10 < many <= few * SPREAD + 10, (few, many)
