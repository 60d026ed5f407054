"""What Apache Kafka's controller and ours send to other voters, to newer and to older ones: the same, to the field.

The test plays the other voter, which says which versions it knows: all, or those of Apache Kafka 3.9 or 3.3. The first
request of each kind is compared.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ottla.core.quorum.stored import StoredState
from ottla.wire.errors import ErrorCode
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.types.vote import VoteRequest, VoteResponse
from tests.interop.groups.conversation import differences
from tests.interop.quorum_frames.comparing import plain
from tests.interop.quorum_frames.controllers import Controller, controllers
from tests.interop.quorum_frames.played_voter import Asked, Served, leading
from tests.interop.quorum_frames.requests import METADATA, METADATA_ID
from tests.interop.quorum_frames.seeded import NODE_ID, Seed

EPOCH = 7
PLAYED = 2
ATTEMPTS, PERIOD_S = 900, 0.1
LONG_ELECTIONS = {"controller.quorum.election.timeout.ms": 3_000}
"""So that the first one succeeds on a busy machine, too."""
KAFKA_3_9: Served = {1: (0, 17), 52: (0, 1)}
KAFKA_3_3: Served = {1: (0, 13), 52: (0, 0), 53: (0, 0), 54: (0, 0), 59: (0, 0), 82: None}

pytestmark = pytest.mark.usefixtures("apache_jars")


def kind_of(asked: Asked) -> str:
    is_pre_vote = isinstance(asked.request, VoteRequest) and asked.request.topics[0].partitions[0].pre_vote
    return "pre-vote" if is_pre_vote else type(asked.request).__name__.removesuffix("Request")


def first_of_each(controller: Controller, kinds: set[str]) -> dict[str, Any]:
    """The first request of each of these kinds, as plain values."""
    for _ in range(ATTEMPTS):
        found: dict[str, Asked] = {}
        for asked in list(controller.played[PLAYED].asked):
            found.setdefault(kind_of(asked), asked)
        if kinds <= found.keys():
            chosen = {kind: found[kind] for kind in kinds}
            return {kind: {"version": each.version, **plain(each.request, controller)} for kind, each in chosen.items()}
        time.sleep(PERIOD_S)
    raise AssertionError(f"{controller.node.name} has sent {sorted(found)}, and not all of {sorted(kinds)}")


def compare(both: tuple[Controller, Controller], kinds: set[str]) -> None:
    """Both send requests of these kinds, and the first of each is the same."""
    apache, ours = (first_of_each(each, kinds) for each in both)
    assert [f"{kind}{each}" for kind in kinds for each in differences(ours[kind], apache[kind])] == []


# --- a voter that is elected, and then left alone ---------------------------------------------------------------------


def electing(asked: Asked) -> Any:
    """Grants its vote, and never fetches: so the leader resigns after a while."""
    request = asked.request
    if isinstance(request, VoteRequest):
        epoch = request.topics[0].partitions[0].replica_epoch
        return _named(VoteResponse, -1, epoch, vote_granted=True)
    if isinstance(request, BeginQuorumEpochRequest):
        return _named(BeginQuorumEpochResponse, NODE_ID, request.topics[0].partitions[0].leader_epoch)
    if isinstance(request, EndQuorumEpochRequest):
        return _named(EndQuorumEpochResponse, NODE_ID, request.topics[0].partitions[0].leader_epoch)
    return None


def _named(kind: Any, leader_id: int, epoch: int, **fields: Any) -> Any:
    partition = kind.PartitionData(0, 0, leader_id=leader_id, leader_epoch=epoch, **fields)
    return kind(topics=(kind.TopicData(METADATA, (partition,)),))


@pytest.mark.parametrize(
    ("served", "kraft_version"),
    [
        pytest.param({}, 1, id="newest"),
        pytest.param(KAFKA_3_9, 1, id="3.9"),
        pytest.param(KAFKA_3_3, 0, id="3.3"),
    ],
)
def test_a_voter_that_is_elected_and_resigns(tmp_path: Path, served: Served, kraft_version: int) -> None:
    seed = Seed((1, 2, 3), kraft_version=kraft_version, stored=StoredState(EPOCH))
    with controllers(tmp_path, seed, LONG_ELECTIONS, {PLAYED: electing}, served) as both:
        compare(both, {"Vote", "BeginQuorumEpoch", "EndQuorumEpoch"} | (set() if served else {"pre-vote"}))
        for each in both:
            asked_for = [kind_of(asked) for asked in each.played[PLAYED].asked]
            assert ("pre-vote" in asked_for) == (not served)


# --- a voter that follows ---------------------------------------------------------------------------------------------


def leading_with_snapshot(asked: Asked) -> Any:
    """Tells of a snapshot, which it refuses to give."""
    if isinstance(asked.request, FetchSnapshotRequest):
        return FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if not isinstance(asked.request, FetchRequest):
        return None
    kind = FetchResponse
    partition = kind.PartitionData(
        0,
        0,
        -1,
        current_leader=kind.LeaderIdAndEpoch(PLAYED, EPOCH),
        snapshot_id=kind.SnapshotId(50, EPOCH - 1),
        records=b"",
    )
    return kind(responses=(kind.FetchableTopicResponse(topic_id=METADATA_ID, partitions=(partition,)),))


def leading_with_snapshot_after_an_update(asked: Asked) -> Any:
    """Has no news until the voter has told of itself: one that waits for a snapshot may give its leader up before."""
    is_updated = any(isinstance(each, UpdateRaftVoterRequest) for each in asked.earlier)
    return leading_with_snapshot(asked) if is_updated else leading(PLAYED, EPOCH, 0)(asked)


@pytest.mark.parametrize(
    ("served", "kraft_version"),
    [
        pytest.param({}, 1, id="newest"),
        pytest.param({}, 0, id="static"),
        pytest.param(KAFKA_3_3, 0, id="3.3"),
    ],
)
def test_a_voter_that_follows(tmp_path: Path, served: Served, kraft_version: int) -> None:
    seed = Seed((1, 2, 3), kraft_version=kraft_version, stored=StoredState(EPOCH, leader_id=PLAYED))
    updates = set() if served or kraft_version else {"UpdateRaftVoter"}
    answer = leading_with_snapshot_after_an_update if updates else leading_with_snapshot
    with controllers(tmp_path, seed, {}, {PLAYED: answer}, served) as both:
        compare(both, {"Fetch", "FetchSnapshot"} | updates)
