"""ElectLeaders on a node that is alone, by raw requests and by kafka-leader-election: the same on both brokers."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.types.elect_leaders import ElectLeadersRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.apache import tool
from tests.interop.node.brokers import Node

TOOL = "org.apache.kafka.tools.LeaderElectionCommand"
PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED = (84, "Leader election not needed for topic partition.")


def elect(client: RawClient, kind: int, asked: dict[str, tuple[int, ...]] | None, version: int = 2) -> Any:
    topics = tuple(ElectLeadersRequest.TopicPartitions(*each) for each in asked.items()) if asked is not None else None
    return client.ask(ElectLeadersRequest(kind, topics, 10_000), version)


def answers(reply: Any) -> dict[tuple[str, int], tuple[int, str | None]]:
    return {
        (topic.topic, each.partition_id): (each.error_code, each.error_message)
        for topic in reply.replica_election_results
        for each in topic.partition_result
    }


@pytest.mark.parametrize("election", [PREFERRED, UNCLEAN])
def test_the_only_broker_leads_already(client: RawClient, election: int):
    topic = client.topic(partitions=2).name
    reply = elect(client, election, {topic: (0, 1)})
    assert (reply.error_code, answers(reply)) == (0, {(topic, 0): NOT_NEEDED, (topic, 1): NOT_NEEDED})


@pytest.mark.parametrize("version", [0, 1, 2])
def test_of_all_partitions_none_is_mentioned(client: RawClient, version: int):
    topic = client.topic().name
    reply = elect(client, PREFERRED, None, version)
    assert (reply.error_code, answers(reply)) == (0, {})
    assert topic in {each.topic for each in reply.replica_election_results}


def test_what_is_not_there_has_no_leader(client: RawClient):
    topic = client.topic().name
    reply = elect(client, PREFERRED, {topic: (9,), "nowhere": (0,)})
    assert (reply.error_code, answers(reply)) == (
        0,
        {(topic, 9): (3, f"No such partition as {topic}-9"), ("nowhere", 0): (3, "No such topic as nowhere")},
    )


def test_an_unknown_kind_of_election(client: RawClient):
    topic = client.topic().name
    reply = elect(client, 5, {topic: (0,)})
    assert (reply.error_code, answers(reply)) == (42, {(topic, 0): (42, "Unknown election type 5")})


def test_the_tool_prints_the_same(broker: Node, client: RawClient):
    topic = client.topic().name
    where = ("--bootstrap-server", broker.bootstrap_servers, "--election-type", "preferred")
    assert tool(TOOL, *where, "--topic", topic, "--partition", "0") == (
        f"Valid replica already elected for partitions {topic}-0\n"
    )
