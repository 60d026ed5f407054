"""What nodes themselves write and read, wherever the partition is led: dead letters, the table of descriptions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.broker.descriptions.topic_table import CompactedTopicTable
from ottla.broker.replicas.end_offsets import ask_end_offsets
from ottla.broker.replicas.record_writer import write_batches
from ottla.testing.virtual_loop import VirtualLoop
from ottla.topology_descriptions import PermanentFailure, TransientFailure
from ottla.wire.batch import Record, build_batch
from ottla.wire.errors import ErrorCode
from tests.unit.broker.virtual_cluster import NODES, Cluster, cluster
from tests.unit.broker.virtual_node import run

TOPIC, TABLE = "orders", "__table"
REPLICATED = {"default.replication.factor": "3", "min.insync.replicas": "2"}


async def write(it: Cluster, number: int, partition: int, *values: bytes) -> ErrorCode:
    written: asyncio.Future[ErrorCode] = it.loop.create_future()
    batches = [build_batch([Record(0, 0, b"k", value, ())]) for value in values]
    write_batches(it.nodes[number], TOPIC, partition, batches, lambda code, message: written.set_result(code))
    return await written


async def ends(it: Cluster, number: int) -> list[Any]:
    found: asyncio.Future[Any] = it.loop.create_future()
    ask_end_offsets(it.nodes[number], [(TOPIC, each) for each in range(3)], found.set_result)
    return [(await found)[TOPIC, each] for each in range(3)]


def test_every_node_writes_to_every_partition() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.create_topic(TOPIC, (1,), (2,), (3,))
            for number in NODES:
                for partition in range(3):
                    assert await write(it, number, partition, b"one", b"two") == 0
            for number in NODES:
                assert await ends(it, number) == [6, 6, 6]

    run(scenario)


def test_what_cannot_be_written_or_asked_for_is_told() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.create_topic(TOPIC, (1,), (2,), (3,))
            await it.kill(3)
            await asyncio.sleep(15)
            assert await ends(it, 1) == [0, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
            assert await write(it, 1, 2, b"lost") == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert await write(it, 1, 1, b"x" * 2_000_000) == ErrorCode.MESSAGE_TOO_LARGE
            it.cut(1, 2)
            writing = loop.create_task(write(it, 1, 1, b"lost"))
            await asyncio.sleep(60)
            assert writing.done()
            assert writing.result() == ErrorCode.NETWORK_EXCEPTION
            it.heal()
            await it.start(3)

    run(scenario)


def test_nobody_waits_for_a_broker_that_was_fenced() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.create_topic(TOPIC, (1,), (2,), (3,))
            assert await write(it, 1, 2, b"there") == 0
            it.cut(3, 1, 2)
            began_s = loop.time()
            assert await write(it, 1, 2, b"lost") == ErrorCode.NETWORK_EXCEPTION
            session_s = it.nodes[1].settings["broker.session.timeout.ms"] / 1000
            assert loop.time() - began_s < session_s + 3, "it takes 30 s to answer a request"
            it.heal()
            await asyncio.sleep(15)
            assert await write(it, 1, 2, b"there again") == 0

    run(scenario)


def test_a_table_is_the_same_on_all_nodes() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=REPLICATED) as it:
            tables = {number: CompactedTopicTable(it.nodes[number], TABLE) for number in NODES}
            for table in tables.values():
                await table.load()
            for number in NODES:
                await tables[number].put(b"of %d" % number, b"first")
            await tables[2].put(b"of 1", b"second")
            await tables[3].put(b"of 2", None)
            for table in tables.values():
                assert [await table.get(b"of %d" % number) for number in NODES] == [b"second", None, b"first"]
            with pytest.raises(PermanentFailure):
                await tables[2].put(b"large", b"x" * 2_000_000)

    run(scenario)


def test_nobody_has_to_wait_for_the_topic_of_a_table() -> None:
    """A call of the plugin may be given up while the controller makes its topic."""

    async def scenario(loop: VirtualLoop) -> None:
        faults: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        async with cluster(loop, settings=REPLICATED) as it:
            tables = {number: CompactedTopicTable(it.nodes[number], TABLE) for number in NODES}
            for table in tables.values():
                given_up = loop.create_task(table.get(b"key"))
                await asyncio.sleep(0)
                given_up.cancel()
            await asyncio.sleep(1)
            await tables[1].put(b"key", b"value")
            assert [await table.get(b"key") for table in tables.values()] == [b"value"] * len(NODES)
        assert faults == []

    run(scenario)


def test_a_table_outlives_its_leader() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=REPLICATED) as it:
            tables = {number: CompactedTopicTable(it.nodes[number], TABLE) for number in NODES}
            await tables[1].put(b"key", b"value")
            leader = it.nodes[1].image.topics_by_name[TABLE].partitions[0].leader
            others = [number for number in NODES if number != leader]
            assert await tables[others[0]].get(b"key") == b"value"
            await it.kill(leader)
            with pytest.raises(TransientFailure):
                await tables[others[1]].get(b"key")
            await asyncio.sleep(15)
            await tables[others[0]].put(b"key", b"newer")
            assert await tables[others[1]].get(b"key") == b"newer"
            await it.start(leader)

    run(scenario)
