"""Several whole nodes in one process, on virtual time, whose links can be cut."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.randomness import Randomness
from ottla.broker.node import Node
from ottla.broker.replicas.formatter import format_directories
from ottla.core.metadata.features import levels_for_format
from ottla.core.quorum.initial_controllers import read_initial_controllers
from ottla.core.quorum.voters import VoterSet
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import InlineOffload, VirtualLoop, VirtualSocket
from ottla.wire import uuid_text
from ottla.wire.types import CreateTopicsRequest
from tests.unit.broker.virtual_node import Client

NODES = (1, 2, 3)
COMBINED = MappingProxyType(dict.fromkeys(NODES, "broker,controller"))
APART = MappingProxyType({1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"})
STATIC_VOTERS = ",".join(f"{number}@127.0.0.1:9{number}93" for number in NODES)
CLUSTER_ID = "b3R0bGEtdGVzdC0wMDAwMQ"
_STEP_S = 0.01


def config_of(node_id: int, roles: str, settings: Mapping[str, str] = MappingProxyType({})) -> NodeConfig:
    listeners = {"broker": f"PLAINTEXT://127.0.0.1:9{node_id}92", "controller": f"CONTROLLER://127.0.0.1:9{node_id}93"}
    return NodeConfig(
        {
            "node.id": str(node_id),
            "process.roles": roles,
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:9{each}93" for each in NODES),
            "log.dirs": f"/data{node_id}",
            **settings,
        },
        {},
    )


class Cluster:
    """Nodes with disks, which can be started, stopped and killed."""

    def __init__(
        self,
        loop: VirtualLoop,
        roles: dict[int, str],
        static_levels: Mapping[str, int] | None = None,
        voters: Sequence[int] | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
        racks: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """With levels of features, they are those of a cluster whose voters are in the settings."""
        self.loop = loop
        self._static_levels = static_levels
        static = {"controller.quorum.voters": STATIC_VOTERS} if static_levels is not None else {}
        own = {number: {"broker.rack": rack} for number, rack in racks.items()}
        self.configs = {
            number: config_of(number, role, static | dict(settings) | own.get(number, {}))
            for number, role in roles.items()
        }
        self.disks = {number: VirtualDisk() for number in roles}
        self.voters = voters or [number for number, role in roles.items() if "controller" in role]
        self.nodes: dict[int, Node] = {}
        self.failures: dict[int, list[str]] = {}
        """By node: why it cannot go on. Its process would have ended, which is left to the test."""
        self._starts: Counter[int] = Counter()
        self._links: dict[frozenset[int], list[VirtualSocket]] = {}
        self._cut: set[frozenset[int]] = set()
        for number in roles:
            self.format(number)

    def format(self, number: int) -> None:
        entries = ",".join(f"{each}@127.0.0.1:9{each}93:{uuid_text(bytes([each] * 16))}" for each in self.voters)
        voters = read_initial_controllers(entries, "CONTROLLER")
        first: dict[str, Any] = {"voters": voters if number in self.voters else VoterSet()}
        if self._static_levels is not None:
            first = {"levels": levels_for_format(self._static_levels, is_dynamic_quorum=False)}
        format_directories(self.disks[number], self.configs[number], 0, cluster_id=CLUSTER_ID, **first)

    async def start(self, *numbers: int) -> None:
        started = await asyncio.gather(*(self._start(number) for number in numbers))
        self.nodes.update(zip(numbers, started, strict=True))

    async def _start(self, number: int) -> Node:
        seed = number + 1000 * self._starts[number]  # no two lives of a broker have the same incarnation
        self._starts[number] += 1
        return await Node.start(
            self.configs[number],
            clock=self.loop.clock,
            randomness=Randomness(random.Random(seed).randbytes),
            disk=self.disks[number],
            offload=InlineOffload,
            bind=self.loop.bind,
            dial=partial(self._dial, number),
            on_fatal=self.failures.setdefault(number, []).append,
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

    async def create_topic(self, name: str, *assignments: tuple[int, ...], **configs: str) -> bytes:
        """A topic whose partitions have these replicas. Its records are of 1970, and stay."""
        kind = CreateTopicsRequest
        placed = tuple(kind.CreatableReplicaAssignment(number, each) for number, each in enumerate(assignments))
        wanted = {"retention.ms": "-1"} | configs
        settings = tuple(kind.CreatableTopicConfig(key, value) for key, value in wanted.items())
        topic = kind.CreatableTopic(name, -1, -1, placed, settings)
        (created,) = (await self.client(next(iter(self.nodes))).ask(kind((topic,), 10_000), 7)).topics
        assert created.error_code == 0, created
        await asyncio.sleep(0.5)  # until all nodes know it
        return bytes(created.topic_id)

    def partition_log(self, number: int, topic: str) -> bytes:
        """The bytes of a topic's first partition on a node that runs."""
        disk = self.disks[number]
        path = self.nodes[number].replicas.by_key[topic, 0].log.directory.path
        names = sorted(each.name for each in disk.list_directory(path) if each.name.endswith(".log"))
        return b"".join(bytes(disk.open(f"{path}/{name}").read(1 << 20, 0)) for name in names)


@asynccontextmanager
async def cluster(
    loop: VirtualLoop,
    roles: Mapping[int, str] = COMBINED,
    *,
    static_levels: Mapping[str, int] | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    racks: Mapping[int, str] = MappingProxyType({}),
) -> AsyncIterator[Cluster]:
    cluster = Cluster(loop, dict(roles), static_levels, settings=settings, racks=racks)
    await cluster.start(*roles)
    try:
        yield cluster
    finally:
        await asyncio.gather(*(node.stop() for node in cluster.nodes.values()))


async def until(is_so: Callable[[], bool], within_s: float = 10) -> float:
    """Wait until something is so; returns how long it took. AssertionError if it takes longer than it may."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    while not is_so():
        await asyncio.sleep(_STEP_S)
        assert loop.time() - began_s <= within_s, f"it is not so after {within_s} s"
    return loop.time() - began_s
