"""What a voter sends to peers that are older than it: the newest version that both know, and nothing that it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from ottla.broker.loop.randomness import Randomness
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.raft_peers import RaftPeers
from ottla.core.quorum.events import Destination, SnapshotId, Stop
from ottla.core.quorum.voters import Listener
from ottla.testing.virtual_loop import VirtualLoop, VirtualSocket
from ottla.wire import frames
from ottla.wire.errors import ErrorCode
from ottla.wire.types.api_versions import ApiVersionsResponse
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.types.vote import VoteRequest, VoteResponse
from tests.unit.broker.virtual_node import run
from tests.unit.core.quorum.replica import (
    EPOCH,
    candidate,
    directory,
    fetch_response,
    follower,
    leader,
    prospective,
    voter,
)

PORT = 9002
API_VERSIONS = 18
KAFKA_3_3 = {API_VERSIONS: (0, 3), 1: (0, 13), 52: (0, 0), 53: (0, 0), 54: (0, 0), 59: (0, 0)}
KAFKA_3_9 = {API_VERSIONS: (0, 4), 1: (0, 17), 52: (0, 1), 53: (0, 1), 54: (0, 1), 59: (0, 1), 82: (0, 0)}


class Arrived(NamedTuple):
    request: Any
    version: int


class OldPeer:
    """Listens, says which versions it serves, and remembers what it is asked, without an answer."""

    def __init__(self, loop: VirtualLoop, served: dict[int, tuple[int, int]]) -> None:
        self.arrived: list[Arrived] = []
        self._loop = loop
        self._served = served
        self._listening = loop.bind("127.0.0.1", PORT)
        loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        sock, _ = self._listening.accept()
        self._loop.add_reader(sock.fileno(), lambda: self._read(sock))

    def _read(self, sock: VirtualSocket) -> None:
        for content in frames.split(sock.recv(1 << 20))[0]:
            _, version, header, body = frames.read_request(content)
            if header.request_api_key != API_VERSIONS:
                self.arrived.append(Arrived(body, version))
                continue
            kind = ApiVersionsResponse
            response = kind(api_keys=tuple(kind.ApiVersion(key, *span) for key, span in self._served.items()))
            sock.send(frames.write_response(response, version, correlation_id=header.correlation_id))


def sent_to(served: dict[int, tuple[int, int]], request: object) -> tuple[list[Arrived], list[Any]]:
    """What arrives of a request at a peer that serves these versions, and what comes back of it."""
    answers: list[Any] = []
    before_the_end: list[Any] = []
    peers: list[OldPeer] = []

    async def scenario(loop: VirtualLoop) -> None:
        peers.append(OldPeer(loop, served))
        randomness = Randomness(lambda size: bytes(size))
        raft = RaftPeers(
            lambda address, told: PeerConnection(
                loop, address, "node-1", randomness=randomness, told=told, dial=loop.dial, timeout_s=30.0
            ),
            lambda node_id: None,
        )
        raft.send(Destination(2, "127.0.0.1", PORT), request, answers.append)
        await asyncio.sleep(1)
        before_the_end.extend(answers)
        raft.close()

    run(scenario)
    return peers[0].arrived, before_the_end


def made_by_candidate() -> VoteRequest:
    return candidate().take_sent(VoteRequest)[0].request


def made_by_leader() -> BeginQuorumEpochRequest:
    return leader().take_sent(BeginQuorumEpochRequest)[0].request


def made_by_resigning_leader() -> EndQuorumEpochRequest:
    replica = leader()
    replica.step(Stop())
    return replica.take_sent(EndQuorumEpochRequest)[0].request


def made_by_follower() -> FetchRequest:
    return follower().take_sent(FetchRequest)[0].request


def made_by_late_follower() -> FetchSnapshotRequest:
    replica = follower()
    replica.answer(replica.take_sent(FetchRequest)[0], fetch_response(snapshot=SnapshotId(50, EPOCH)))
    return replica.take_sent(FetchSnapshotRequest)[0].request


def made_by_voter_that_moved() -> UpdateRaftVoterRequest:
    moved = replace(voter(1), listeners=(Listener("CONTROLLER", "elsewhere", 1),))
    return follower(node=moved).take_sent(UpdateRaftVoterRequest)[0].request


@pytest.mark.parametrize(
    ("make", "old", "newer"),
    [
        pytest.param(made_by_candidate, 0, 1, id="Vote"),
        pytest.param(made_by_leader, 0, 1, id="BeginQuorumEpoch"),
        pytest.param(made_by_resigning_leader, 0, 1, id="EndQuorumEpoch"),
        pytest.param(made_by_follower, 13, 17, id="Fetch"),
        pytest.param(made_by_late_follower, 0, 1, id="FetchSnapshot"),
    ],
)
def test_requests_go_in_a_version_that_the_peer_knows(make: Callable[[], Any], old: int, newer: int) -> None:
    request = make()
    for served, version in ((KAFKA_3_3, old), (KAFKA_3_9, newer)):
        (arrived,), answers = sent_to(served, request)
        assert arrived.version == version
        assert type(arrived.request) is type(request)
        assert answers == []


def test_a_vote_says_what_its_version_can() -> None:
    request = made_by_candidate()
    (newer,), _ = sent_to(KAFKA_3_9, request)
    assert newer.request == request
    (old,), _ = sent_to(KAFKA_3_3, request)
    without = {"replica_directory_id": bytes(16), "voter_directory_id": bytes(16)}
    asked, got = request.topics[0].partitions[0], old.request.topics[0].partitions[0]
    assert (old.request.voter_id, got) == (-1, replace(asked, **without))


def test_a_leader_that_resigns_names_its_successors_to_an_old_peer() -> None:
    (old,), _ = sent_to(KAFKA_3_3, made_by_resigning_leader())
    partition = old.request.topics[0].partitions[0]
    assert (partition.preferred_successors, partition.preferred_candidates) == ((2, 3), ())
    (newer,), _ = sent_to(KAFKA_3_9, made_by_resigning_leader())
    partition = newer.request.topics[0].partitions[0]
    assert partition.preferred_successors == ()
    assert [each.candidate_id for each in partition.preferred_candidates] == [2, 3]


def test_a_fetch_names_its_replica_to_an_old_peer() -> None:
    (old,), _ = sent_to(KAFKA_3_3, made_by_follower())
    assert (old.request.replica_id, old.request.replica_state.replica_id) == (1, -1)
    (newer,), _ = sent_to(KAFKA_3_9, made_by_follower())
    assert (newer.request.replica_id, newer.request.replica_state.replica_id) == (-1, 1)
    assert newer.request.topics[0].partitions[0].replica_directory_id == directory(1)


@pytest.mark.parametrize("served", [KAFKA_3_3, KAFKA_3_9], ids=["3.3", "3.9"])
def test_a_peer_without_pre_votes_is_not_asked_for_one(served: dict[int, tuple[int, int]]) -> None:
    replica = prospective()
    first, *_ = replica.take_sent(VoteRequest)
    arrived, answers = sent_to(served, first.request)
    assert arrived == []
    assert answers == [VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)]
    replica.answer(first, answers[0])
    (again,) = [each.request for each in replica.take_sent(VoteRequest) if each.to == first.to]
    assert again.topics[0].partitions[0].replica_epoch == EPOCH + 1, "it is a candidate"
    assert len(sent_to(served, again)[0]) == 1


def test_a_voter_that_moved_cannot_tell_an_old_leader() -> None:
    arrived, answers = sent_to(KAFKA_3_3, made_by_voter_that_moved())
    assert arrived == []
    assert answers == [UpdateRaftVoterResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)]
    assert len(sent_to(KAFKA_3_9, made_by_voter_that_moved())[0]) == 1
