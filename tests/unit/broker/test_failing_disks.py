"""Disks that fail under whole nodes, on virtual time: full while a certain file is written, or without a sync.

Nothing that was acknowledged is lost, and a node goes on where it was when its disk is mended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.core.metadata.topic_image import PartitionImage
from ottla.log.disk import read_all
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import FetchRequest, VoteRequest
from tests.unit.broker.faulty_disk import FaultyDisk
from tests.unit.broker.virtual_cluster import APART, CLUSTER_ID, COMBINED, NODES, Cluster, cluster, until
from tests.unit.broker.virtual_node import Client, create_topic, produce_to, run


def faulty_cluster(loop: VirtualLoop, settings: dict[str, str] | None = None) -> tuple[Cluster, dict[int, FaultyDisk]]:
    """Three nodes that are not started yet, and their disks."""
    it = Cluster(loop, dict(COMBINED), settings=settings or {})
    disks = {number: FaultyDisk() for number in NODES}
    it.disks.update(disks)
    for number in NODES:
        it.format(number)
    return it, disks


async def end(it: Cluster) -> None:
    await asyncio.gather(*(node.stop() for node in it.nodes.values()))


async def restart(it: Cluster, number: int, disk: FaultyDisk) -> None:
    """The process has ended because of its disk; that is mended, and the node started."""
    assert it.failures.pop(number), "or it would not have ended"
    await it.kill(number)
    disk.mend()
    await it.start(number)


def test_a_leader_whose_disk_is_full_gives_up_and_the_others_go_on() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            disk = it.disks[old]
            disk.capacity_bytes = 0
            others = [each for each in NODES if each != old]
            (created,) = (await it.client(others[0]).ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            (new,) = it.leaders
            assert new != old
            assert it.nodes[old].raft.quorum.has_failed
            disk.capacity_bytes = None
            await it.kill(old)
            await it.start(old)
            await asyncio.sleep(1)
            assert it.nodes[old].image.topic("orders") is not None

    run(scenario)


@pytest.mark.parametrize("of_leader", [True, False], ids=["leader", "follower"])
def test_a_disk_that_is_full_when_the_index_of_the_metadata_is_written(of_leader: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it, disks = faulty_cluster(loop, {"metadata.log.segment.ms": "1000"})
        await it.start(*NODES)
        await asyncio.sleep(3)
        victim = next(each for each in NODES if (each in it.leaders) is of_leader)
        client = it.client(next(each for each in NODES if each != victim))
        disks[victim].fill_at("*/__cluster_metadata-0/*.timeindex")
        acknowledged = set()
        for name in map(str, range(5)):
            (created,) = (await client.ask(create_topic(name), 7)).topics
            acknowledged |= {name} if created.error_code == 0 else set()
            await asyncio.sleep(2)
        assert disks[victim].failed, "a segment has ended"
        assert "No space left on device" in it.failures[victim][0]
        assert (victim in it.leaders, len(it.leaders)) == (False, 1), "a leader gives up"
        assert len(acknowledged) == 5, "the others go on"

        await restart(it, victim, disks[victim])
        await until(lambda: set(it.nodes[victim].image.topics_by_name) == acknowledged)
        await end(it)

    run(scenario)


def partition_of(it: Cluster, node: int, number: int) -> PartitionImage:
    """A partition as a node knows it."""
    return it.nodes[node].image.topics_by_name["orders"].partitions[number]


def read_from(topic_id: bytes, number: int) -> FetchRequest:
    kind = FetchRequest
    wanted = kind.FetchPartition(number, -1, 0, partition_max_bytes=1 << 20)
    return kind(min_bytes=1, session_epoch=-1, topics=(kind.FetchTopic(topic_id=topic_id, partitions=(wanted,)),))


@pytest.mark.prompt
@pytest.mark.parametrize("what", ["roll", "read"])
def test_a_directory_that_fails_under_a_roll_or_a_read_is_told_to_the_controller(what: str) -> None:
    """The request is answered with an error, and that must not be all."""

    async def scenario(loop: VirtualLoop) -> None:
        it, disks = faulty_cluster(loop, {"log.dirs": "/one,/two"})
        await it.start(*NODES)
        short = {"index.interval.bytes": "0", "segment.index.bytes": "24"}
        topic_id = await it.create_topic("orders", (1,), (1,), **short)
        client, replicas = it.client(1), it.nodes[1].replicas.by_key
        (lost,) = (number for number in (0, 1) if replicas["orders", number].directory.path == "/two")
        for _ in range(2):
            await client.ask(produce_to(topic_id, partition=lost), 13)
        if what == "roll":
            disks[1].fill_at("/two/*index")
            answer = await client.ask(produce_to(topic_id, partition=lost), 13)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        else:
            disks[1].break_at("read", "/two/*.log")
            answer = await client.ask(read_from(topic_id, lost), 17)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert disks[1].failed
        await until(lambda: partition_of(it, 2, lost).leader == -1, 1)
        assert partition_of(it, 2, 1 - lost).leader == 1
        assert not it.failures[1], "it goes on with its other directory"
        await end(it)

    run(scenario)


@pytest.mark.parametrize("victim", [1, 2], ids=["leader", "follower"])
def test_a_disk_that_is_full_when_the_index_of_a_partition_is_written(victim: int) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it, disks = faulty_cluster(loop)
        await it.start(*NODES)
        short = {"min.insync.replicas": "2", "index.interval.bytes": "0", "segment.index.bytes": "36"}
        topic_id = await it.create_topic("orders", NODES, **short)

        async def produce(leader: int, first: int) -> tuple[set[bytes], set[int]]:
            """Values that were acknowledged, and other answers."""
            acknowledged, codes = set(), set()
            for number in range(first, first + 5):
                value = b"value %d." % number
                answer = await it.client(leader).ask(produce_to(topic_id, value), 13)
                code = answer.responses[0].partition_responses[0].error_code
                codes |= {code} - {0}
                acknowledged |= {value} if code == 0 else set()
            return acknowledged, codes

        before, _ = await produce(1, 0)
        assert len(before) == 5
        disks[victim].fill_at("*/orders-0/*.index")
        meanwhile, codes = await produce(1, 10)
        assert disks[victim].failed
        assert "No space left on device" in it.failures[victim][0]
        if victim == 1:
            assert (meanwhile, codes) == (set(), {ErrorCode.KAFKA_STORAGE_ERROR})

        await restart(it, victim, disks[victim])
        await until(lambda: set(partition_of(it, 3, 0).isr) == set(NODES), 60)
        after, _ = await produce(partition_of(it, 3, 0).leader, 20)
        assert len(after) == 5
        (log,) = {it.partition_log(each, "orders") for each in NODES}
        assert all(value in log for value in before | meanwhile | after)
        await end(it)

    run(scenario)


def test_a_follower_whose_disk_fails_before_it_writes_goes_on_in_its_other_directory() -> None:
    """Its connection to the leader serves both: the failure of one must not end what it fetches for the other."""

    async def scenario(loop: VirtualLoop) -> None:
        it, disks = faulty_cluster(loop, {"log.dirs": "/one,/two"})
        await it.start(*NODES)
        topic_id = await it.create_topic("orders", (1, 2), (1, 2))
        for number in (0, 1):
            await it.client(1).ask(produce_to(topic_id, partition=number), 13)
        await it.stop(2)
        await it.start(2)
        await until(lambda: all(set(partition_of(it, 1, number).isr) == {1, 2} for number in (0, 1)))
        replicas = it.nodes[2].replicas.by_key
        (lost,) = (number for number in (0, 1) if replicas["orders", number].directory.path == "/two")
        disks[2].break_at("read", "/two/*.log")  # a log that was just loaded is read before it is written
        await it.client(1).ask(produce_to(topic_id, partition=lost, acks=1), 13)
        await until(lambda: bool(disks[2].failed))
        await it.client(1).ask(produce_to(topic_id, partition=1 - lost, acks=1), 13)
        await until(lambda: replicas["orders", 1 - lost].log_end_offset == 2)
        assert replicas["orders", lost].is_offline
        await end(it)

    run(scenario)


def test_a_controller_whose_log_directory_fails_does_not_become_a_broker() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict(APART))
        values = {**it.configs[1].static, "log.dirs": "/data1,/data1b"}
        it.configs[1] = NodeConfig(values, {})
        it.disks[1] = disk = FaultyDisk()
        disk.break_at("create", "/data1b/*-checkpoint*")
        it.format(1)
        await it.start(*APART)
        await asyncio.sleep(20)
        assert it.nodes[1].storage.directories[1].is_offline
        for node in it.nodes.values():
            assert set(node.image.brokers) == {4, 5}
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


@pytest.mark.parametrize(
    "fail",
    [
        lambda disk: disk.fill_at("*/quorum-state*"),
        lambda disk: disk.break_at("sync", "*/quorum-state*"),
        lambda disk: disk.break_at("rename", "*/quorum-state*"),
    ],
    ids=["no room", "no sync", "no rename"],
)
def test_a_vote_that_cannot_be_stored_is_not_given(fail: Callable[[FaultyDisk], None]) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it, disks = faulty_cluster(loop)
        await it.start(*NODES)
        (created,) = (await it.client(1).ask(create_topic("before"), 7)).topics
        assert created.error_code == 0
        await asyncio.sleep(5)
        voter, candidate = (number for number in NODES if number not in it.leaders)
        kind, quorum = VoteRequest, it.nodes[voter].raft.quorum
        wanted = kind.PartitionData(
            0, quorum.epoch + 1, candidate, bytes([candidate] * 16), quorum.node.directory_id, quorum.epoch, 1 << 40
        )
        request = kind(CLUSTER_ID, voter, (kind.TopicData("__cluster_metadata", (wanted,)),))
        path = f"/data{voter}/__cluster_metadata-0/quorum-state"
        stored = read_all(disks[voter], path)
        fail(disks[voter])
        with pytest.raises((TimeoutError, ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(Client(loop, int(f"9{voter}93")).ask(request, 2), 5)
        assert quorum.has_failed
        assert read_all(disks[voter], path) == stored, "it has not promised anything"

        (created,) = (await it.client(candidate).ask(create_topic("without"), 7)).topics
        assert created.error_code == 0, "the others go on"
        await restart(it, voter, disks[voter])
        await until(lambda: set(it.nodes[voter].image.topics_by_name) == {"before", "without"})
        (leader,) = it.leaders
        await it.kill(leader)
        await until(lambda: len(it.leaders) == 1)
        assert it.nodes[voter].raft.quorum.leader_id == it.leaders[0], "and votes again, for that was needed"
        await end(it)

    run(scenario)
