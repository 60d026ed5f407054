"""Reassignments on a node that is alone, by raw requests and by kafka-reassign-partitions: the same on both brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.apache import tool
from tests.interop.node.brokers import Node

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ASSIGNMENT = "The manual partition assignment includes"


def reassign(
    client: RawClient,
    topic: str,
    *wanted: tuple[int, tuple[int, ...] | None],
    version: int = 1,
    may_resize: bool = True,
) -> Any:
    kind = AlterPartitionReassignmentsRequest
    partitions = tuple(kind.ReassignablePartition(*each) for each in wanted)
    return client.ask(kind(10_000, may_resize, (kind.ReassignableTopic(topic, partitions),)), version)


def answers(reply: Any) -> list[tuple[int, str | None]]:
    assert (reply.error_code, reply.error_message) == (0, None)
    return [(each.error_code, each.error_message) for topic in reply.responses for each in topic.partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_the_present_replicas_are_fine(client: RawClient, version: int):
    topic = client.topic(partitions=2).name
    assert answers(reassign(client, topic, (0, (1,)), (1, (1,)), version=version)) == [(0, None), (0, None)]
    listed = client.ask(ListPartitionReassignmentsRequest(10_000, None), 0)
    assert (listed.error_code, listed.error_message, listed.topics) == (0, None, ())


def test_nothing_is_on_its_way_that_could_be_called_back(client: RawClient):
    topic = client.topic().name
    assert answers(reassign(client, topic, (0, None))) == [(85, None)]


@pytest.mark.parametrize("may_resize", [True, False])
def test_what_cannot_be(client: RawClient, may_resize: bool):
    topic = client.topic(partitions=3).name
    wanted = ((0, (9,)), (1, (1, 1)), (2, ()), (7, (1,)))
    assert answers(reassign(client, topic, *wanted, may_resize=may_resize)) == [
        (39, f"{ASSIGNMENT} broker 9, but no such broker is registered."),
        (39, f"{ASSIGNMENT} the broker 1 more than once."),
        (39, f"{ASSIGNMENT} an empty replica list."),
        (3, f"Unable to find partition {topic}:7."),
    ]
    assert answers(reassign(client, "nowhere", (0, (1,)))) == [(3, "Unable to find a topic named nowhere.")]


def test_the_tool_executes_verifies_and_lists(broker: Node, client: RawClient, tmp_path: Path):
    topic = client.topic(partitions=2).name
    plan = tmp_path / "plan.json"
    assigned = [{"topic": topic, "partition": number, "replicas": [1]} for number in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": assigned}))
    where = ("--bootstrap-server", broker.bootstrap_servers)
    executed = tool(TOOL, *where, "--execute", "--reassignment-json-file", str(plan))
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed
    verified = tool(TOOL, *where, "--verify", "--reassignment-json-file", str(plan))
    assert verified == (
        "Status of partition reassignment:\n"
        f"Reassignment of partition {topic}-0 is completed.\n"
        f"Reassignment of partition {topic}-1 is completed.\n"
        "\n"
        "Clearing broker-level throttles on broker 1\n"
        f"Clearing topic-level throttles on topic {topic}\n"
    )
    assert tool(TOOL, *where, "--list") == "No partition reassignments found.\n"
