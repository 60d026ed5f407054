"""A whole node on virtual time, without sockets, threads or a disk."""

from __future__ import annotations

from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.types import ConsumerGroupHeartbeatRequest, FetchRequest
from tests.unit.broker.virtual_node import Client, create_topic, produce_to, run, running


def test_it_serves_a_produce_and_a_group_and_finds_the_record_again() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        disk = VirtualDisk()
        async with running(loop, disk):
            client = Client(loop, 9092)
            (created,) = (await client.ask(create_topic("orders"), 7)).topics
            produced = await client.ask(produce_to(created.topic_id), 13)
            assert produced.responses[0].partition_responses[0].error_code == 0
            joining = ConsumerGroupHeartbeatRequest(
                "g", "m-1", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=("orders",), topic_partitions=()
            )
            answer = await client.ask(joining, 1)
            assert [each.topic_id for each in answer.assignment.topic_partitions] == [created.topic_id]
        async with running(loop, disk):
            client = Client(loop, 9092)
            kind = FetchRequest
            wanted = kind.FetchTopic(topic_id=created.topic_id, partitions=(kind.FetchPartition(0, fetch_offset=0),))
            fetched = await client.ask(kind(max_wait_ms=10, min_bytes=1, topics=(wanted,)), 17)
            assert fetched.responses[0].partitions[0].high_watermark == 1

    run(scenario)
