"""A cluster comes back from copies of its directories, in another place: everything that was acknowledged is there."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from ottla.client import (
    EARLIEST,
    LATEST,
    Client,
    Producer,
    ProducerRecord,
    TopicPartition,
    fetch,
    group_offsets,
    topics,
)
from ottla.client import transactions as txn
from ottla.client.topics import NewTopic
from ottla.testing import Cluster

TOPIC, PARTITIONS, GROUP = "orders", 3, "billing"
PLACES = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
ROUND = 300
TIMEOUT_MS = 60_000


def on(cluster: Cluster, work: Any) -> Any:
    async def working() -> Any:
        async with Client(cluster.bootstrap_servers) as client:
            return await work(client)

    return asyncio.run(working())


async def fill(client: Client) -> None:
    """Records of an idempotent producer; a transaction with an offset that is committed, and one that stays open."""
    await topics.create(client, NewTopic(TOPIC, PARTITIONS, 3, {"retention.ms": "-1"}))
    await write(client, 0)
    await write_in_transaction(client, "paid", commit=True)
    await write_in_transaction(client, "open", commit=False)


async def write(client: Client, first: int) -> None:
    records = [
        ProducerRecord(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(first, first + ROUND)
    ]
    await Producer(client, idempotent=True).send_all(records)


async def write_in_transaction(client: Client, name: str, *, commit: bool) -> None:
    identity = await txn.begin(client, name, timeout_ms=TIMEOUT_MS)
    records = [ProducerRecord(TOPIC, name.encode(), partition=each.partition) for each in PLACES]
    await Producer(client, identity=identity).send_all(records)
    if commit:
        await txn.commit_offsets(client, identity, GROUP, {each: txn.Mark(7) for each in PLACES})
        await txn.end(client, identity, commit=True)


async def contents(client: Client) -> tuple[list[bytes], dict[TopicPartition, int], str]:
    """What is committed, the offsets of the group, and the id of the topic."""
    await end_open(client)  # it would hold up what comes after it
    start = {each: EARLIEST for each in PLACES}
    found = [record.value or b"" async for record in fetch(client, start, until=LATEST, isolation="read_committed")]
    offsets = await group_offsets.committed(client, GROUP, require_stable=True)
    (topic,) = await topics.describe(client, TOPIC)
    return sorted(found), {at: each.offset for at, each in offsets.items()}, str(topic.topic_id)


async def end_open(client: Client) -> None:
    """Whoever takes the transactional id ends what was open."""
    await txn.begin(client, "open", timeout_ms=TIMEOUT_MS)


def copy(source: Path, target: Path) -> None:
    """Copy the directories of all nodes, and tell each node where its data are now."""
    shutil.copytree(source, target)
    for properties in target.glob("node-*/server.properties"):
        properties.write_text(properties.read_text().replace(str(source), str(target)))


@pytest.mark.parametrize("how", ["stopped", "standing still"])
def test_a_cluster_comes_back_from_copies_of_its_directories(how: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with ottla.testing.cluster(data_dir=first) as cluster:
        on(cluster, fill)
        if how == "stopped":
            cluster.stop()
            copy(first, second)
        else:
            for node in cluster:
                node.pause()
            copy(first, second)  # as a snapshot of the file system would be
            for node in cluster:
                node.resume()
            cluster.wait_in_sync()
            on(cluster, lambda client: write(client, ROUND))  # which is not in the copies
    shutil.rmtree(first)

    numbers = [b"%d" % number for number in range(ROUND)]
    with ottla.testing.cluster(data_dir=second) as restored:
        restored.wait_in_sync()
        values, offsets, topic_id = on(restored, contents)
        assert values == sorted([*numbers, *[b"paid"] * PARTITIONS])
        assert offsets == dict.fromkeys(PLACES, 7)
        on(restored, lambda client: write(client, ROUND))
        again, _, same_id = on(restored, contents)
        assert len(again) == len(values) + ROUND
        assert same_id == topic_id
