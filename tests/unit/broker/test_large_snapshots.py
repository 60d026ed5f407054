"""A snapshot of 20 MiB, when one is due by default, and a node with an empty disk that copies it piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.broker.node import Node
from ottla.core.metadata.context import Result
from ottla.core.metadata.snapshot import SnapshotId
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types import FetchSnapshotRequest
from ottla.wire.types.cluster_metadata import ConfigRecord
from tests.unit.broker.virtual_cluster import Cluster
from tests.unit.broker.virtual_node import run

MIB = 1 << 20
BETWEEN_SNAPSHOTS = "metadata.log.max.record.bytes.between.snapshots"
VALUE_BYTES = MIB // 32 - 1
"""The longest text that a record may have."""
LEADER, EMPTY = 1, 2
_TOPIC = 2


@asynccontextmanager
async def leader_and_spare(loop: VirtualLoop) -> AsyncIterator[tuple[Cluster, Node]]:
    """A sole voter that runs, and keeps no log that a snapshot covers; a spare controller with an empty disk that does
    not run yet."""
    roles = {LEADER: "broker,controller", EMPTY: "controller"}
    it = Cluster(loop, roles, voters=(LEADER,), settings={"metadata.max.retention.bytes": "1"})
    await it.start(LEADER)
    yield it, it.nodes[LEADER]
    await asyncio.gather(*(node.stop() for node in it.nodes.values()))


async def write_until_snapshot(node: Node, generation: str) -> SnapshotId:
    """Write 20 MiB of settings, over those of the generation before; returns the snapshot that is then made."""
    former = node.raft.snapshots.newest
    assert node.settings[BETWEEN_SNAPSHOTS] == 20 * MIB
    for number in range(20):
        assert node.raft.snapshots.newest == former, "a snapshot comes after 20 MiB, and not before"
        settings = [ConfigRecord(_TOPIC, f"topic-{number}", f"{each}", generation * VALUE_BYTES) for each in range(32)]
        node.controller.append(Result(tuple(Versioned(each, 0) for each in settings), None))
        await asyncio.sleep(1.1)  # snapshots are looked after every second
    await asyncio.sleep(5)
    newest = node.raft.snapshots.newest
    assert newest is not None
    assert newest != former
    return newest


class SnapshotFetches:
    """What a leader is asked for with FetchSnapshot, and what it answers."""

    def __init__(self, leader: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[tuple[SnapshotId, int, Any]] = []
        """The snapshot, the position, and the partition of the response."""
        self._answered = asyncio.Event()
        receive = leader.raft.receive

        def watched(request: Any, api_version: int, listener: str, done: Any) -> None:
            def answered(response: Any) -> None:
                if isinstance(request, FetchSnapshotRequest):
                    asked, (answer,) = request.topics[0].partitions[0], response.topics[0].partitions
                    identity = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
                    self.answers.append((identity, asked.position, answer))
                    self._answered.set()
                done(response)

            receive(request, api_version, listener, answered)

        monkeypatch.setattr(leader.raft, "receive", watched)

    async def wait_for(self, count: int) -> None:
        while len(self.answers) < count:
            self._answered.clear()
            await self._answered.wait()

    def check_download(self, identity: SnapshotId, size: int) -> None:
        """The last answers are all pieces of a snapshot, in order, of 1 MiB each but for the last."""
        positions = range(0, size, MIB)
        pieces = self.answers[-len(positions) :]
        assert [(each, position) for each, position, _ in pieces] == [(identity, at) for at in positions]
        sizes = [len(answer.unaligned_records) for _, _, answer in pieces]
        assert sizes == [MIB] * (size // MIB) + ([size % MIB] if size % MIB else [])
        assert {answer.size for _, _, answer in pieces} == {size}


def test_an_empty_follower_copies_a_snapshot_of_20_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with leader_and_spare(loop) as (it, leader):
            old = await write_until_snapshot(leader, "a")
            assert leader.raft.partition.log_start_offset == 0, "the log is kept until there are two snapshots"
            newest = await write_until_snapshot(leader, "b")
            assert leader.raft.partition.log_start_offset == newest.end_offset
            assert leader.raft.snapshots.ids == [newest], f"{old} is gone"

            fetches = SnapshotFetches(leader, monkeypatch)
            await it.start(EMPTY)
            await asyncio.sleep(3)
            follower = it.nodes[EMPTY]
            size = leader.raft.snapshots.size_of(newest)
            assert size is not None
            assert size > 20 * MIB
            fetches.check_download(newest, size)
            assert len(fetches.answers) == 21
            assert follower.raft.snapshots.ids == [newest]
            assert follower.raft.partition.log_start_offset == newest.end_offset
            assert follower.image == leader.image

    run(scenario)


@pytest.mark.prompt
def test_a_follower_starts_over_when_the_snapshot_is_deleted_midway(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with leader_and_spare(loop) as (it, leader):
            await write_until_snapshot(leader, "a")
            first = await write_until_snapshot(leader, "b")
            fetches = SnapshotFetches(leader, monkeypatch)
            starting = loop.create_task(it.start(EMPTY))
            await fetches.wait_for(7)
            for _ in leader.metadata_chores._write():
                pass
            newest = leader.raft.snapshots.newest
            assert newest is not None
            assert newest > first

            await starting
            await asyncio.sleep(3)
            follower = it.nodes[EMPTY]
            codes = [(identity, answer.error_code) for identity, _, answer in fetches.answers if answer.error_code]
            assert codes == [(first, ErrorCode.SNAPSHOT_NOT_FOUND)]
            size = leader.raft.snapshots.size_of(newest)
            assert size is not None
            fetches.check_download(newest, size)
            assert follower.raft.snapshots.ids == [newest]
            assert follower.image == leader.image
            directory = follower.raft.partition.directory.path
            assert not [each for each in it.disks[EMPTY].list_directory(directory) if each.name.endswith(".part")]

    run(scenario)
