"""Whole voters on virtual time that are older than each other, or start long after each other."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.handlers import api_versions
from ottla.broker.loop.randomness import Randomness
from ottla.broker.node import Node
from ottla.broker.replicas.formatter import format_directories
from ottla.core.quorum.initial_controllers import read_initial_controllers
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import InlineOffload, VirtualLoop
from ottla.wire import uuid_text
from ottla.wire.types import ApiVersionsResponse
from tests.unit.broker.virtual_node import Client, create_topic, run

NODES = (1, 2, 3)
CLUSTER_ID = "b3R0bGEtdGVzdC0wMDAwMQ"


class Voters:
    """Three nodes with disks. With `is_static` they know each other by their settings (kraft.version 0)."""

    def __init__(self, loop: VirtualLoop, roles: str = "broker,controller", *, is_static: bool = False) -> None:
        self.nodes: dict[int, Node] = {}
        self._loop = loop
        entries = ",".join(f"{each}@127.0.0.1:9{each}93:{uuid_text(bytes([each] * 16))}" for each in NODES)
        voters = None if is_static else read_initial_controllers(entries, "CONTROLLER")
        self._configs = {each: _config(each, roles, is_static=is_static) for each in NODES}
        self._disks = {each: VirtualDisk() for each in NODES}
        for each in NODES:
            format_directories(self._disks[each], self._configs[each], 0, cluster_id=CLUSTER_ID, voters=voters)

    async def start(self, *numbers: int) -> None:
        started = await asyncio.gather(*(self._start(each) for each in numbers))
        self.nodes.update(zip(numbers, started, strict=True))

    async def _start(self, number: int) -> Node:
        return await Node.start(
            self._configs[number],
            clock=self._loop.clock,
            randomness=Randomness(random.Random(number).randbytes),
            disk=self._disks[number],
            offload=InlineOffload,
            bind=self._loop.bind,
            dial=self._loop.dial,
        )

    async def stop(self, *numbers: int) -> None:
        for each in numbers:
            await self.nodes.pop(each).stop()

    @property
    def leaders(self) -> list[int]:
        return [number for number, node in self.nodes.items() if node.raft.is_leader]

    def client(self, number: int) -> Client:
        return Client(self._loop, int(f"9{number}92"))


def _config(node_id: int, roles: str, *, is_static: bool) -> NodeConfig:
    addresses = {each: f"127.0.0.1:9{each}93" for each in NODES}
    known = {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}
    if is_static:
        known = {"controller.quorum.voters": ",".join(f"{each}@{address}" for each, address in addresses.items())}
    listeners = {"broker": f"PLAINTEXT://127.0.0.1:9{node_id}92", "controller": f"CONTROLLER://{addresses[node_id]}"}
    settings = {
        "node.id": str(node_id),
        "process.roles": roles,
        "listeners": ",".join(listeners[role] for role in roles.split(",")),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"/data{node_id}",
    }
    return NodeConfig(settings | known, {})


def snapshot(node: Node) -> None:
    """Make a snapshot, and let the log begin behind it."""
    for _ in node.metadata_chores._write():
        pass
    newest = node.raft.snapshots.newest
    assert newest is not None
    node.raft.drop_below(newest.end_offset)


@pytest.mark.parametrize(
    ("known", "is_static"),
    [
        pytest.param({1: (4, 13), 52: (0, 0), 53: (0, 0), 54: (0, 0), 59: (0, 0)}, True, id="3.3"),
        pytest.param({1: (4, 17), 52: (0, 1)}, False, id="3.9"),
    ],
)
def test_nodes_that_take_each_other_for_old_ones_form_a_quorum(
    monkeypatch: pytest.MonkeyPatch, known: dict[int, tuple[int, int]], is_static: bool
) -> None:
    """Each tells the others that it knows no more than that release of Apache Kafka; so there are no pre-votes."""

    def served(node: Any, key: int) -> ApiVersionsResponse.ApiVersion:
        return ApiVersionsResponse.ApiVersion(key, *known[key]) if key in known else newest(node, key)

    newest = api_versions._served
    monkeypatch.setattr(api_versions, "_served", served)

    async def scenario(loop: VirtualLoop) -> None:
        it = Voters(loop, is_static=is_static)
        await it.start(*NODES)
        (first,) = it.leaders
        await it.client(first).ask(create_topic("before"), 7)
        epoch = it.nodes[first].raft.quorum.epoch
        await it.stop(first)
        await asyncio.sleep(3)
        (second,) = it.leaders
        assert it.nodes[second].raft.quorum.epoch > epoch
        (created,) = (await it.client(second).ask(create_topic("after"), 7)).topics
        assert created.error_code == 0
        snapshot(it.nodes[second])
        await it.start(first)
        await asyncio.sleep(3)
        assert set(it.nodes[first].image.topics_by_name) == {"before", "after"}
        assert it.nodes[first].raft.snapshots.newest is not None
        await it.stop(*NODES)

    run(scenario)


def test_a_controller_waits_for_the_others_for_as_long_as_it_takes() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Voters(loop, "controller")
        first = asyncio.ensure_future(it.start(1))
        await asyncio.sleep(100)
        assert not first.done()
        await it.start(2)
        await first
        assert len(it.leaders) == 1
        for node in it.nodes.values():
            assert set(node.image.controllers) == {1, 2}
        await it.stop(1, 2)

    run(scenario)
