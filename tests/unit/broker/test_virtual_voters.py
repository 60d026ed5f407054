"""Voters of whole nodes on virtual time: added, removed, joining by themselves, with another disk, at another port."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from ottla.broker.replicas.formatter import format_directories
from ottla.core.quorum.voters import VoterSet
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import AddRaftVoterRequest, RemoveRaftVoterRequest
from tests.unit.broker.virtual_cluster import CLUSTER_ID, NODES, Cluster, cluster, config_of
from tests.unit.broker.virtual_node import create_topic, run

SPARE = 4
JOINING = MappingProxyType({"controller.quorum.auto.join.enable": "true"})
JOIN_S = 6
"""It asks every 2 s, and may be refused until it has caught up."""


async def start_spare(
    it: Cluster,
    number: int = SPARE,
    settings: Mapping[str, str] = MappingProxyType({}),
    roles: str = "broker,controller",
) -> bytes:
    """Start a node with an empty disk, which is no voter; returns the id of its directory."""
    it.configs[number], it.disks[number] = config_of(number, roles, settings), VirtualDisk()
    format_directories(it.disks[number], it.configs[number], 0, cluster_id=CLUSTER_ID, voters=VoterSet())
    await it.start(number)
    await asyncio.sleep(1)
    directory_id = it.nodes[number].storage.metadata.properties.directory_id
    assert directory_id is not None
    return directory_id


async def add(it: Cluster, number: int, directory_id: bytes, *, port: int | None = None) -> ErrorCode:
    kind = AddRaftVoterRequest
    listener = kind.Listener("CONTROLLER", "127.0.0.1", port or int(f"9{number}93"))
    request = kind(CLUSTER_ID, 5_000, number, directory_id, (listener,))
    return ErrorCode((await ask(it, request, 0)).error_code)


async def remove(it: Cluster, number: int, directory_id: bytes) -> ErrorCode:
    return ErrorCode((await ask(it, RemoveRaftVoterRequest(CLUSTER_ID, number, directory_id), 0)).error_code)


async def ask(it: Cluster, request: Any, version: int) -> Any:
    """Through any broker, which passes it on to the leader."""
    return await it.client(next(iter(it.nodes))).ask(request, version)


def voters(it: Cluster) -> set[tuple[int, ...]]:
    """The voters that each node knows."""
    return {node.raft.quorum.control.voters.ids for node in it.nodes.values()}


def test_a_spare_controller_becomes_a_voter_and_leaves_again() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            directory_id = await start_spare(it)
            assert await add(it, SPARE, directory_id, port=9999) is ErrorCode.REQUEST_TIMED_OUT, "nobody is there"
            assert await add(it, 1, directory_id) is ErrorCode.DUPLICATE_VOTER
            assert await add(it, SPARE, directory_id) is ErrorCode.NONE
            await asyncio.sleep(1)
            assert voters(it) == {(1, 2, 3, 4)}
            assert await remove(it, SPARE, bytes([9] * 16)) is ErrorCode.VOTER_NOT_FOUND
            assert await remove(it, SPARE, directory_id) is ErrorCode.NONE
            await asyncio.sleep(1)
            assert voters(it) == {NODES}
            assert not it.nodes[SPARE].image.brokers[SPARE].fenced, "its broker goes on"

    run(scenario)


def test_a_leader_that_is_removed_hands_over() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            assert await remove(it, old, bytes([old] * 16)) is ErrorCode.NONE
            await asyncio.sleep(5)
            (new,) = it.leaders
            assert new != old
            assert voters(it) == {tuple(each for each in NODES if each != old)}
            (created,) = (await it.client(old).ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0, "its broker goes on"

    run(scenario)


def test_a_voter_whose_disk_was_replaced_votes_again_when_it_is_removed_and_added() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            lost = next(each for each in NODES if each not in it.leaders)
            await it.kill(lost)
            directory_id = await start_spare(it, lost)
            assert not it.nodes[lost].raft.quorum.is_voter
            assert await remove(it, lost, bytes([lost] * 16)) is ErrorCode.NONE
            assert await add(it, lost, directory_id) is ErrorCode.NONE
            await asyncio.sleep(1)
            assert it.nodes[lost].raft.quorum.is_voter
            await it.kill(it.leaders[0])
            await asyncio.sleep(5)
            assert len(it.leaders) == 1, "its vote is needed for that"

    run(scenario)


def test_a_spare_that_may_join_by_itself_becomes_a_voter() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            epoch = it.nodes[it.leaders[0]].raft.quorum.epoch
            directory_id = await start_spare(it, settings=JOINING)
            await asyncio.sleep(JOIN_S)
            assert voters(it) == {(1, 2, 3, 4)}
            assert it.nodes[it.leaders[0]].raft.quorum.epoch == epoch, "nobody was disturbed"
            assert await remove(it, SPARE, directory_id) is ErrorCode.NONE
            await asyncio.sleep(JOIN_S)
            assert voters(it) == {(1, 2, 3, 4)}, "it joins again as long as it may"
            await it.stop(SPARE)
            await it.start(SPARE)
            await it.kill(it.leaders[0])
            await asyncio.sleep(5)
            assert len(it.leaders) == 1, "three of four are needed, so its vote counts"

    run(scenario)


@pytest.mark.parametrize(
    ("roles", "settings"), [("broker,controller", {}), ("broker", JOINING)], ids=["may not", "is no controller"]
)
def test_a_node_that_may_not_join_by_itself_does_not(roles: str, settings: dict[str, str]) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await start_spare(it, settings=settings, roles=roles)
            await asyncio.sleep(5 * JOIN_S)
            assert voters(it) == {NODES}
            assert not it.nodes[SPARE].image.brokers[SPARE].fenced

    run(scenario)


@pytest.mark.parametrize("of_leader", [True, False])
def test_a_voter_whose_disk_was_replaced_votes_again_when_it_may_join_by_itself(of_leader: bool) -> None:
    """It removes the directory that it had, and then adds the one that it has."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=JOINING) as it:
            await it.client(1).ask(create_topic("orders"), 7)
            lost = next(each for each in NODES if (each in it.leaders) is of_leader)
            await it.kill(lost)
            await asyncio.sleep(5)
            directory_id = await start_spare(it, lost, JOINING)
            await asyncio.sleep(JOIN_S)
            for node in it.nodes.values():
                voter = node.raft.quorum.control.voters.by_id(lost)
                assert voter is not None
                assert voter.directory_id == directory_id != bytes([lost] * 16)
                assert node.image.topic("orders") is not None
            assert voters(it) == {NODES}
            await it.kill(it.leaders[0])
            await asyncio.sleep(5)
            assert len(it.leaders) == 1, "its vote is needed for that"

    run(scenario)


def test_a_voter_that_has_moved_to_another_port_is_found_there() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            moved = next(each for each in NODES if each not in it.leaders)
            await it.stop(moved)
            listeners = f"PLAINTEXT://127.0.0.1:9{moved}92,CONTROLLER://127.0.0.1:9{moved}95"
            it.configs[moved] = config_of(moved, "broker,controller", {"listeners": listeners})
            await it.start(moved)
            await asyncio.sleep(5)
            for node in it.nodes.values():
                voter = node.raft.quorum.control.voters.by_id(moved)
                assert voter is not None
                assert [each.port for each in voter.listeners] == [int(f"9{moved}95")]
            await it.kill(it.leaders[0])
            await asyncio.sleep(5)
            assert len(it.leaders) == 1, "the moved voter was asked where it is now"

    run(scenario)
