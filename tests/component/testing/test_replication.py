"""Replicated partitions on real processes: what was acknowledged outlives the node that took it."""

from __future__ import annotations

import asyncio

import ottla.testing
from ottla.client import EARLIEST, LATEST, Client, fetch, topics
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.topics import NewTopic
from ottla.testing import Cluster

TOPIC, PARTITIONS = "orders", 3
ROUND = 200


async def write(producer: Producer, first: int) -> None:
    await producer.send_all([ProducerRecord(TOPIC, b"%d" % number) for number in range(first, first + ROUND)])


async def values(client: Client) -> list[int]:
    start = {(TOPIC, number): EARLIEST for number in range(PARTITIONS)}
    return sorted([int(record.value or b"") async for record in fetch(client, start, until=LATEST)])


async def wait_in_sync(client: Client, count: int) -> None:
    async with asyncio.timeout(60):
        while True:
            (topic,) = await topics.describe(client, TOPIC)
            if all(len(each.isr) == count for each in topic.partitions):
                return
            await asyncio.sleep(0.1)


async def lose_each_leader(cluster: Cluster) -> None:
    async with Client(cluster.bootstrap_servers) as client:
        new = NewTopic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})
        await topics.create(client, new)
        producer = Producer(client, idempotent=True)
        written = 0
        for _ in range(2):
            await wait_in_sync(client, 3)
            await write(producer, written)
            node = cluster.leader(TOPIC, 0)
            node.kill()
            await write(producer, written + ROUND)
            written += 2 * ROUND
            assert await values(client) == list(range(written))
            node.start()
        await wait_in_sync(client, 3)
        assert await values(client) == list(range(written))


def test_what_is_acknowledged_outlives_each_leader() -> None:
    settings = {"broker_heartbeat_interval_ms": 300, "broker_session_timeout_ms": 3000}
    with ottla.testing.cluster(**settings) as cluster:  # type: ignore[arg-type]
        asyncio.run(lose_each_leader(cluster))
