"""Several whole nodes in one process, on virtual time: they elect a leader, and follow its metadata log."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.randomness import Randomness
from ottla.broker.node import Node
from ottla.broker.replicas.formatter import format_directories
from ottla.core.quorum.initial_controllers import read_initial_controllers
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import InlineOffload, VirtualLoop, VirtualSocket
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DescribeClusterRequest, DescribeQuorumRequest
from tests.unit.broker.virtual_node import Client, create_topic, produce_to, run

NODES = (1, 2, 3)
COMBINED = MappingProxyType(dict.fromkeys(NODES, "broker,controller"))
APART = MappingProxyType({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
CLUSTER_ID = "b3R0bGEtdGVzdC0wMDAwMQ"


def config_of(node_id: int, roles: str) -> NodeConfig:
    listeners = {"broker": f"PLAINTEXT://127.0.0.1:9{node_id}92", "controller": f"CONTROLLER://127.0.0.1:9{node_id}93"}
    return NodeConfig(
        {
            "node.id": str(node_id),
            "process.roles": roles,
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:9{each}93" for each in NODES),
            "log.dirs": f"/data{node_id}",
        },
        {},
    )


class Cluster:
    """Nodes with disks, which can be started, stopped and killed."""

    def __init__(self, loop: VirtualLoop, roles: dict[int, str]) -> None:
        self.loop = loop
        self.configs = {number: config_of(number, role) for number, role in roles.items()}
        self.disks = {number: VirtualDisk() for number in roles}
        self.nodes: dict[int, Node] = {}
        self._links: dict[frozenset[int], list[VirtualSocket]] = {}
        self._cut: set[frozenset[int]] = set()
        for number in self.disks:
            self.format(number)

    def format(self, number: int) -> None:
        entries = ",".join(f"{each}@127.0.0.1:9{each}93:{uuid_text(bytes([each] * 16))}" for each in NODES)
        voters = read_initial_controllers(entries, "CONTROLLER")
        format_directories(self.disks[number], self.configs[number], 0, cluster_id=CLUSTER_ID, voters=voters)

    async def start(self, *numbers: int) -> None:
        started = await asyncio.gather(*(self._start(number) for number in numbers))
        self.nodes.update(zip(numbers, started, strict=True))

    async def _start(self, number: int) -> Node:
        return await Node.start(
            self.configs[number],
            clock=self.loop.clock,
            randomness=Randomness(random.Random(number).randbytes),
            disk=self.disks[number],
            offload=InlineOffload,
            bind=self.loop.bind,
            dial=partial(self._dial, number),
        )

    def _dial(self, number: int, address: tuple[str, int]) -> Any:
        link = frozenset((number, address[1] // 100 % 10))
        sock = self.loop.dial(address)
        self._links.setdefault(link, []).append(sock)
        self._set_cut(sock, link in self._cut)
        return sock

    def cut(self, one: int, *others: int) -> None:
        """What two nodes send each other vanishes from now on."""
        for other in others:
            link = frozenset((one, other))
            self._cut.add(link)
            for sock in self._links.get(link, ()):
                self._set_cut(sock, True)

    def heal(self) -> None:
        self._cut.clear()
        for socks in self._links.values():
            for sock in socks:
                self._set_cut(sock, False)

    @staticmethod
    def _set_cut(sock: VirtualSocket, is_cut: bool) -> None:
        sock.is_cut = is_cut
        if sock.other is not None:
            sock.other.is_cut = is_cut

    async def stop(self, number: int) -> None:
        await self.nodes.pop(number).stop()

    async def kill(self, number: int) -> None:
        await self.nodes.pop(number).kill()

    @property
    def leaders(self) -> list[int]:
        return [number for number, node in self.nodes.items() if node.raft.is_leader]

    def client(self, number: int) -> Client:
        return Client(self.loop, int(f"9{number}92"))


@asynccontextmanager
async def cluster(loop: VirtualLoop, roles: Mapping[int, str] = COMBINED) -> AsyncIterator[Cluster]:
    cluster = Cluster(loop, dict(roles))
    await cluster.start(*roles)
    try:
        yield cluster
    finally:
        await asyncio.gather(*(node.stop() for node in cluster.nodes.values()))


def test_three_nodes_elect_one_leader_and_know_each_other() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            assert len(it.leaders) == 1
            await asyncio.sleep(5)
            for node in it.nodes.values():
                assert {number: broker.fenced for number, broker in node.image.brokers.items()} == {
                    1: False,
                    2: False,
                    3: False,
                }

    run(scenario)


def test_a_topic_that_any_node_creates_is_known_to_all() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            for number in NODES:
                (created,) = (await it.client(number).ask(create_topic(f"orders-{number}"), 7)).topics
                assert created.error_code == 0, created
                assert it.nodes[number].image.topic(f"orders-{number}") is not None
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert set(node.image.topics_by_name) == {"orders-1", "orders-2", "orders-3"}

    run(scenario)


def test_the_cluster_goes_on_when_its_leader_is_killed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            await it.client(first).ask(create_topic("before"), 7)
            await it.kill(first)
            began = loop.time()
            other = next(iter(it.nodes))
            (created,) = (await it.client(other).ask(create_topic("after"), 7)).topics
            assert created.error_code == 0
            assert loop.time() - began < 5
            (second,) = it.leaders
            assert second != first
            await it.start(first)
            await asyncio.sleep(3)
            assert set(it.nodes[first].image.topics_by_name) == {"before", "after"}
            assert it.leaders == [second]

    run(scenario)


def test_a_leader_that_stops_hands_over() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            epoch = it.nodes[first].raft.quorum.epoch
            began = loop.time()
            await it.stop(first)
            assert loop.time() - began < 10
            await asyncio.sleep(2)
            (second,) = it.leaders
            assert it.nodes[second].raft.quorum.epoch == epoch + 1

    run(scenario)


def test_a_node_that_was_away_for_long_loads_a_snapshot() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            await it.stop(away)
            (leader,) = it.leaders
            await it.client(leader).ask(create_topic("orders"), 7)
            node = it.nodes[leader]
            for _ in node.metadata_chores._write():
                pass
            newest = node.raft.snapshots.newest
            assert newest is not None
            node.raft.drop_below(newest.end_offset)
            await it.start(away)
            await asyncio.sleep(3)
            follower = it.nodes[away]
            assert follower.image.topic("orders") is not None
            assert follower.raft.snapshots.newest == newest
            assert follower.image == node.image

    run(scenario)


def test_all_nodes_start_again_with_what_they_had() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.client(1).ask(create_topic("orders"), 7)
            for number in NODES:
                await it.kill(number)
            await it.start(*NODES)
            await asyncio.sleep(1)
            assert len(it.leaders) == 1
            for node in it.nodes.values():
                assert node.image.topic("orders") is not None

    run(scenario)


def test_the_quorum_is_described_alike_by_every_node() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(3)
            kind = DescribeQuorumRequest
            request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
            for number in NODES:
                answer = await it.client(number).ask(request, 2)
                (partition,) = answer.topics[0].partitions
                assert [partition.leader_id] == it.leaders
                assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
                ends = [voter.log_end_offset for voter in partition.current_voters]
                assert max(ends) - min(ends) <= 1
                assert partition.high_watermark > 0

    run(scenario)


def test_controllers_and_brokers_may_be_apart() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            client = it.client(4)
            (created,) = (await client.ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert node.image.topic("orders") is not None
                assert set(node.image.brokers) == {4, 5}
                assert set(node.image.controllers) == {1, 2, 3}
            partition = it.nodes[1].image.partition("orders", 0)
            assert partition is not None
            produced = await it.client(partition.leader).ask(produce_to(created.topic_id), 13)
            assert produced.responses[0].partition_responses[0].error_code == 0
            other = 9 - partition.leader
            refused = await it.client(other).ask(produce_to(created.topic_id), 13)
            assert refused.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_every_controller_names_the_active_one() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            for number in NODES:
                answer = await Client(loop, int(f"9{number}93")).ask(DescribeClusterRequest(endpoint_type=2), 1)
                assert [answer.controller_id] == it.leaders
                assert {each.broker_id for each in answer.brokers} == set(NODES)

    run(scenario)


def test_what_a_leader_without_followers_has_decided_counts_for_nobody() -> None:
    """Its records are never committed; the next leader is asked again, and the client sees nothing of it."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            others = [number for number in NODES if number != old]
            it.cut(old, *others)
            creating = loop.create_task(it.client(old).ask(create_topic("orders"), 7))
            await asyncio.sleep(1)
            fork = it.nodes[old].controller.image
            assert fork is not None
            assert fork.topic("orders") is not None
            assert it.nodes[old].image.topic("orders") is None, "no broker acts on what is not committed"
            await asyncio.sleep(9)
            (new,) = it.leaders
            assert new != old
            (created,) = (await it.client(new).ask(create_topic("payments"), 7)).topics
            assert created.error_code == 0
            assert not creating.done()
            it.heal()
            (created,) = (await creating).topics
            assert created.error_code == 0
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert set(node.image.topics_by_name) == {"orders", "payments"}
                topic = node.image.topic("orders")
                assert topic is not None
                assert topic.topic_id == created.topic_id, "that of the second attempt: the first was cut off"

    run(scenario)


def test_a_controller_whose_log_directory_fails_does_not_become_a_broker() -> None:
    class FailingDisk(VirtualDisk):
        def count(self, what: str, path: str) -> None:
            if path.startswith("/data1b/") and "-checkpoint" in path:
                raise OSError(errno.EIO, "Input/output error", path)
            super().count(what, path)

    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict(APART))
        values = {**it.configs[1].static, "log.dirs": "/data1,/data1b"}
        it.configs[1] = NodeConfig(values, {})
        it.disks[1] = FailingDisk()
        it.format(1)
        await it.start(*APART)
        await asyncio.sleep(20)
        assert it.nodes[1].storage.directories[1].is_offline
        for node in it.nodes.values():
            assert set(node.image.brokers) == {4, 5}
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


def test_a_request_that_a_former_controller_never_answers_goes_to_the_next_one() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            others = [number for number in NODES if number != old]
            it.cut(old, *others)
            began = loop.time()
            (created,) = (await it.client(others[0]).ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            assert loop.time() - began < 10
            it.heal()

    run(scenario)
