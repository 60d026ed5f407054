"""The metadata log of a node: which quorums it takes part in, and what the quorum reads of it."""

from __future__ import annotations

import pytest

from ottla.broker.node import Node
from ottla.core.metadata.snapshot import SnapshotId, snapshot_id
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import Actions, EpochEnd
from ottla.core.quorum.voters import ControlHistory, Listener, Voter, VoterSet
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types import BeginQuorumEpochRequest
from tests.unit.broker.virtual_node import Client, run, running

LISTENERS = (Listener("CONTROLLER", "127.0.0.1", 9093),)


def start_with(node: Node, *voters: Voter) -> None:
    """Start as if the log had other voters."""
    quorum = node.raft.quorum
    known, quorum.control = quorum.control, ControlHistory(VoterSet(voters))
    try:
        node.raft.start(node)
    finally:
        quorum.control = known


def test_a_node_that_is_no_voter_is_refused() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            with pytest.raises(QuorumError, match="is not among the voters"):
                start_with(node, Voter(2, bytes(16), LISTENERS))

    run(scenario)


def test_what_the_quorum_reads_of_the_log() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            log, raft = node.raft.quorum.log, node.raft
            assert (log.start_offset, log.end_offset, log.last_epoch) == (0, raft.end_offset, 1)
            assert log.end_offset_for_epoch(0) == EpochEnd(0, 0)
            assert log.end_offset_for_epoch(1) == log.end_offset_for_epoch(9) == EpochEnd(1, raft.end_offset)
            first, *_ = split_batches(log.read(0, 1))
            assert isinstance(first, BatchView)
            assert (first.base_offset, first.partition_leader_epoch) == (0, 1)
            assert log.read(raft.end_offset, 100) == b""
            assert log.latest_snapshot is log.earliest_snapshot is None

    run(scenario)


@pytest.mark.parametrize(
    ("end_offset", "reason"),
    [(6, "it is inside of a batch"), (1 << 40, "committed is ")],
    ids=["inside of a batch", "above the high watermark"],
)
def test_a_snapshot_that_does_not_end_where_a_committed_batch_ends_is_not_written(
    end_offset: int, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first records of a log are one batch, from offset 3 to 11."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            wrong = node.image.fork()
            wrong.last_offset = end_offset - 1
            with monkeypatch.context() as patched:
                patched.setattr(node, "image", wrong)
                write_snapshot(node)
            assert node.raft.snapshots.newest is None
            assert f"no snapshot at {end_offset}: {reason}" in caplog.text
            write_snapshot(node)
            assert node.raft.snapshots.newest == snapshot_id(node.image), "one of the committed metadata is"

    run(scenario)


def test_the_age_of_a_snapshot_is_known_without_reading_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that cleans up asks for the age of its oldest snapshot, and requests wait meanwhile."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            write_snapshot(node)
            snapshots, pieces = node.raft.snapshots, list[int]()
            (identity,) = snapshots.ids
            written_at_ms = snapshots.read(identity).last_contained_log_timestamp
            read_piece = snapshots.read_piece

            def counted(identity: SnapshotId, position: int, max_bytes: int) -> bytes:
                pieces.append(max_bytes)
                return read_piece(identity, position, max_bytes)

            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "read_piece", counted)
                patched.setattr(snapshots, "read", None)
                assert snapshots.timestamp_ms(identity) == written_at_ms > 0
            assert sum(pieces) < (snapshots.size_of(identity) or 0) / 4

    run(scenario)


def write_snapshot(node: Node) -> None:
    for _ in node.metadata_chores._write():
        pass


def test_a_request_that_names_a_second_leader_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            kind = BeginQuorumEpochRequest
            partition = kind.PartitionData(0, leader_id=2, leader_epoch=1)
            request = kind(None, -1, (kind.TopicData("__cluster_metadata", (partition,)),))
            answer = await Client(loop, 9093).ask(request, 1)
            assert (answer.error_code, answer.topics) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
            assert node.raft.is_leader

    run(scenario)
    (told,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert told.getMessage() == "a request was rejected: epoch 1 has two leaders, 1 and 2"


def test_a_quorum_that_is_broken_ends_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Actions:
        raise QuorumError("records were lost")

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            told: list[str] = []
            with monkeypatch.context() as patched:
                patched.setattr(node, "failed", told.append)
                patched.setattr(node.raft.quorum, "step", broken)
                node.raft.peer_gone(2)
            assert told == ["the quorum of the metadata log is broken: records were lost"]

    run(scenario)
