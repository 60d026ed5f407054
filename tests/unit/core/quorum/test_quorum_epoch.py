"""BeginQuorumEpoch and EndQuorumEpoch, in each state."""

from typing import Any

import pytest

from ottla.core.quorum.events import PeerGone, StateStored, StoodStill, Stop
from ottla.core.quorum.states import Follower, State
from ottla.core.quorum.stored import StoredState
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.vote import VoteRequest
from tests.unit.core.quorum.replica import (
    EPOCH,
    STATES,
    TOPIC,
    Replica,
    begin,
    directory,
    end,
    fetch,
    fetched,
    leader,
    partition_of,
    resigned,
    unattached,
    vote,
    vote_response,
    voter,
)


@pytest.mark.parametrize("make", [begin, end])
def test_another_cluster(make: Any):
    response = unattached().ask(make(cluster_id="another"))
    assert (ErrorCode(response.error_code), response.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, ())


@pytest.mark.parametrize("make", [begin, end])
@pytest.mark.parametrize(
    ("epoch", "leader_id", "code"),
    [(EPOCH - 1, 2, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH, -1, ErrorCode.INVALID_REQUEST)],
)
def test_errors_of_the_partition(make: Any, epoch: int, leader_id: int, code: ErrorCode):
    replica = unattached()
    assert ErrorCode(partition_of(replica.ask(make(epoch, leader_id))).error_code) is code
    assert replica.quorum.state is State.UNATTACHED


@pytest.mark.parametrize("state", ["unattached", "voted", "prospective", "candidate", "follower", "fetched"])
def test_a_leader_of_the_same_epoch_is_followed(state: str):
    replica = STATES[state]()
    vote_before = (replica.stored.voted_id, replica.stored.voted_directory_id)
    partition = partition_of(replica.ask(begin()))
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 2, EPOCH)
    assert replica.quorum.state is State.FOLLOWER
    assert replica.stored == StoredState(EPOCH, 2, *vote_before), "the vote stays"


@pytest.mark.parametrize("make", STATES.values(), ids=STATES)
def test_a_leader_of_a_higher_epoch_is_followed(make: Any):
    replica = make()
    partition = partition_of(replica.ask(begin(EPOCH + 1, 3)))
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 3, EPOCH + 1)
    assert replica.stored == StoredState(EPOCH + 1, 3)
    assert [each.to.node_id for each in replica.take_sent(FetchRequest)][-1] == 3


@pytest.mark.parametrize("state", ["leader", "fetched", "resigned"])
def test_a_request_that_names_a_second_leader_of_an_epoch_is_rejected(state: str):
    replica = STATES[state]()
    before = replica.quorum.state, replica.quorum.leader_id
    check_second_leader(replica.ask(begin(EPOCH, 3)))
    assert (replica.quorum.state, replica.quorum.leader_id) == before


def test_a_request_that_names_a_second_leader_is_rejected_when_it_had_to_wait_for_the_disk():
    replica = fetched()
    replica.defers_stores = True
    replica.ask(vote(EPOCH + 1))
    replica.ask(begin(EPOCH + 1, 2))
    replica.ask(begin(EPOCH + 1, 3))
    replica.step(StateStored())
    replica.step(StateStored())
    granted, begun, rejected = replica.replies.values()
    assert partition_of(granted).vote_granted
    assert partition_of(begun).error_code == 0
    check_second_leader(rejected)
    assert (replica.quorum.leader_id, replica.quorum.epoch) == (2, EPOCH + 1)


def check_second_leader(response: Any) -> None:
    assert isinstance(response, Reject)
    assert response.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "two leaders" in str(response)


def test_the_voter_is_checked_after_the_leader_was_followed():
    replica = unattached()
    partition = partition_of(replica.ask(begin(directory_id=directory(9))))
    assert ErrorCode(partition.error_code) is ErrorCode.INVALID_VOTER_KEY
    assert replica.quorum.state is State.FOLLOWER


def test_an_observer_follows_as_well():
    replica = unattached(voters=(2, 3, 4))
    assert partition_of(replica.ask(begin())).error_code == 0
    assert replica.quorum.state is State.FOLLOWER


# --- the leader's side


def answer_begin(error: int = 0, epoch: int = EPOCH, leader_id: int = 1) -> BeginQuorumEpochResponse:
    kind = BeginQuorumEpochResponse
    return kind(topics=(kind.TopicData(TOPIC, (kind.PartitionData(0, error, leader_id, epoch),)),))


def test_silent_voters_are_told_again_every_second():
    replica = leader()
    for sent in replica.take_sent(BeginQuorumEpochRequest):
        replica.answer(sent, answer_begin())
    replica.advance(500)
    replica.ask(fetch(replica_id=2))
    replica.advance(500)
    assert [each.to.node_id for each in replica.take_sent(BeginQuorumEpochRequest)] == [3]
    replica.advance(500)
    assert [each.to.node_id for each in replica.take_sent(BeginQuorumEpochRequest)] == [2]


def test_a_leader_that_hears_of_a_higher_epoch_follows():
    replica = leader()
    sent = replica.take_sent(BeginQuorumEpochRequest)[0]
    replica.answer(sent, answer_begin(ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 2, 3))
    assert replica.quorum.state is State.FOLLOWER
    assert replica.stored == StoredState(EPOCH + 2, 3)


# --- EndQuorumEpoch


@pytest.mark.parametrize(
    ("candidates", "wait_ms"),
    [
        ((1, 3), 0),
        ((3, 1), 500),
        ((3, 4, 1), 500),
        ((3, 4, 5, 1), 500),
        ((3, 1, 4, 5), 125),
        ((3,), 1_000),
        ((), 1_000),
    ],
)
def test_the_place_among_the_candidates_decides_the_wait(candidates: tuple[int, ...], wait_ms: int):
    replica = fetched()
    assert partition_of(replica.ask(end(candidates=candidates))).error_code == 0
    state = replica.quorum.epoch_state
    if wait_ms == 0:
        assert replica.quorum.state is State.PROSPECTIVE
        return
    assert isinstance(state, Follower)
    assert state.fetch_by_ms - replica.now_ms == wait_ms
    replica.advance(wait_ms)
    assert replica.quorum.state is State.PROSPECTIVE
    assert replica.take_sent(VoteRequest)


def test_the_end_of_an_unknown_leaders_epoch_is_still_news_of_it():
    replica = unattached()
    replica.ask(end(EPOCH + 1, 2, (3, 1)))
    assert replica.stored == StoredState(EPOCH + 1, 2)


def test_a_leader_that_stops_names_who_should_follow():
    replica = leader()
    replica.take_sent(BeginQuorumEpochRequest)
    replica.ask(fetch(offset=replica.log.end_offset, last_epoch=EPOCH, replica_id=3))
    replica.step(Stop())
    assert replica.quorum.state is State.RESIGNED
    assert not replica.quorum.has_stopped
    sent = replica.take_sent(EndQuorumEpochRequest)
    assert {each.to.node_id for each in sent} == {2, 3}
    candidates = sent[0].request.topics[0].partitions[0].preferred_candidates
    assert [each.candidate_id for each in candidates] == [3, 2]
    kind = EndQuorumEpochResponse
    for each in sent:
        partition = kind.PartitionData(0, 0, -1, EPOCH)
        replica.answer(each, kind(topics=(kind.TopicData(TOPIC, (partition,)),)))
    assert replica.quorum.has_stopped
    replica.advance(60_000)
    assert replica.quorum.state is State.RESIGNED, "a node that stops stands for no election"


def test_a_resigned_leader_begins_the_next_epoch_without_a_leader():
    replica = resigned()
    assert {each.to.node_id for each in replica.take_sent(EndQuorumEpochRequest)} == {2, 3}
    assert replica.quorum.leader_id == -1
    replica.advance(1_000)
    assert replica.stored == StoredState(EPOCH + 1)
    assert replica.quorum.state is State.PROSPECTIVE


def test_parked_fetches_are_refused_when_the_leader_resigns():
    replica = leader()
    replica.append()
    request = fetch(offset=replica.log.end_offset, last_epoch=EPOCH, high_watermark=replica.log.end_offset)
    assert replica.ask(request) is None
    before = set(replica.replies)
    replica.step(Stop())
    (token,) = set(replica.replies) - before
    partition = partition_of(replica.replies[token])
    assert ErrorCode(partition.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- a start


@pytest.mark.parametrize(("node_id", "wait_ms"), [(1, 30), (2, 60), (3, 90)])
def test_a_voter_that_starts_without_a_leader_waits_for_its_turn_only(node_id: int, wait_ms: int):
    replica = Replica(StoredState(EPOCH), node=voter(node_id)).start()
    replica.advance(wait_ms - 1)
    assert replica.quorum.state is State.UNATTACHED
    replica.advance(1)
    assert replica.quorum.state is State.PROSPECTIVE
    assert replica.stored == StoredState(EPOCH), "whether a leader is there is asked without raising the epoch"


def test_the_former_leader_comes_last_when_it_starts_again():
    replica = resigned()
    replica.advance(89)
    assert replica.quorum.state is State.RESIGNED
    replica.advance(1)
    assert (replica.quorum.state, replica.quorum.epoch) == (State.PROSPECTIVE, EPOCH + 1)


def test_a_voter_that_starts_beside_a_leader_follows_it_and_disturbs_nobody():
    replica = Replica(StoredState(EPOCH)).start().advance(30)
    asked = replica.take_sent(VoteRequest)[0]
    replica.answer(asked, vote_response(granted=False, leader_id=2))
    assert (replica.quorum.state, replica.quorum.leader_id, replica.quorum.epoch) == (State.FOLLOWER, 2, EPOCH)


# --- a process that stood still


@pytest.mark.parametrize("state", ["unattached", "prospective", "candidate", "leader", "fetched", "resigned"])
def test_nobody_is_given_up_right_after_a_process_stood_still(state: str):
    replica = STATES[state]()
    before = replica.quorum.state
    replica.now_ms += 60_000
    replica.step(StoodStill(1_000))
    assert replica.quorum.state is before
    replica.advance(999)
    assert replica.quorum.state is before
    replica.advance(1)
    assert replica.quorum.state is not before


# --- a dead leader


def test_followers_of_a_dead_leader_stand_for_election_by_rank():
    replica = fetched()
    assert not partition_of(replica.ask(vote(pre_vote=True))).vote_granted
    replica.step(PeerGone(3))
    assert not partition_of(replica.ask(vote(pre_vote=True))).vote_granted, "only the leader's death counts"
    replica.step(PeerGone(2))
    assert replica.quorum.state is State.PROSPECTIVE, "the first in rank waits for its jitter only"
    assert partition_of(replica.ask(vote(pre_vote=True))).vote_granted
