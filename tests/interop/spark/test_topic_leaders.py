"""A leader that moves while a task reads: two nodes of Apache Kafka, as ottla has one yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client import TopicPartition, topics
from ottla.client.blocking import BlockingClient
from ottla.client.client import always
from ottla.client.topics import NewTopic
from ottla.spark.options import read_options
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import Task
from ottla.spark.topic.task_reader import read_task
from ottla.wire.types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from tests.interop.apache import ApacheKafka
from tests.interop.spark.queries import until
from tests.interop.spark.topics import Topics, new_name

FIRST, SECOND = 1, 2


@pytest.fixture
def two_nodes(apache_jars: Path, tmp_path: Path) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path / "first") as first:
        second = ApacheKafka(tmp_path / "second", format_arguments=("--no-initial-controllers",))
        listener = f"PLAINTEXT://{second.bootstrap_servers}"
        second.settings |= {
            "process.roles": "broker",
            "node.id": str(SECOND),
            "controller.quorum.bootstrap.servers": first.controller_servers,
            "listeners": listener,
            "advertised.listeners": listener,
        }
        with second:
            yield first


def move(client: BlockingClient, at: TopicPartition, to: int) -> None:
    part = AlterPartitionReassignmentsRequest.ReassignablePartition(at.partition, (to,))
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(at.topic, (part,))
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=(topic,))
    answer = client.ask("AlterPartitionReassignments", always(request), broker="controller")
    assert answer.of(AlterPartitionReassignmentsResponse).error_code == 0

    def has_moved() -> bool:
        client.metadata.expire(at.topic)
        found = client.call(_leader, at)
        return found == to

    until(has_moved, "the new leader", 60)


async def _leader(client: object, at: TopicPartition) -> int:
    return (await client.leader(at)).leader  # type: ignore[attr-defined, no-any-return]


def test_a_leader_moves_while_a_task_reads(two_nodes: ApacheKafka):
    name = new_name()
    at = TopicPartition(name, 0)
    with BlockingClient(two_nodes.bootstrap_servers) as client:
        until(lambda: len(client.call(_brokers)) == 2, "the second node")
        client.call(topics.create, NewTopic(name, assignments={0: [FIRST]}))
        filling = Topics(two_nodes.bootstrap_servers)
        for number in range(20):
            filling.fill(name, 0, 10, first=number * 10, size=200)
        filling.close()
        given = {"kafka.bootstrap.servers": two_nodes.bootstrap_servers, "subscribe": name}
        options = read_options(TopicOptions, {**given, "kafka.max.partition.fetch.bytes": "3000"})
        batches = read_task(lambda: client, Task(at, None, 0, 200, FIRST, 0), options)
        found = next(batches).column("offset").to_pylist()
        with BlockingClient(two_nodes.bootstrap_servers) as other:
            move(other, at, SECOND)
        for each in batches:
            found += each.column("offset").to_pylist()
    assert found == list(range(200))


async def _brokers(client: object) -> object:
    return (await client.refresh()).brokers  # type: ignore[attr-defined]
