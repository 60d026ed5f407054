"""Vote: each check, and each state with each kind of vote."""

from typing import Any

import pytest

from ottla.core.quorum.events import NotAnswered, StateNotStored, StateStored
from ottla.core.quorum.states import Prospective, State
from ottla.core.quorum.stored import NOBODY, StoredState
from ottla.wire import decode, encode
from ottla.wire.errors import ErrorCode
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.vote import VoteRequest, VoteResponse
from tests.unit.core.quorum.replica import (
    EPOCH,
    LOG_END,
    LOG_EPOCH,
    STATES,
    candidate,
    directory,
    fetched,
    follower,
    leader,
    partition_of,
    prospective,
    unattached,
    vote,
    vote_response,
    voted,
)

SHORTER = (LOG_END - 1, LOG_EPOCH)
OLDER = (LOG_END + 50, LOG_EPOCH - 1)


# --- checks, in their order


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topic": "orders"}, ErrorCode.INVALID_REQUEST),
        ({"partition_index": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_are_refused_as_a_whole(fields: dict[str, Any], code: ErrorCode):
    response = unattached().ask(vote(**fields))
    assert (response.error_code, response.topics) == (code, ())


def test_a_null_cluster_id_is_not_checked():
    assert unattached().ask(vote(cluster_id=None)).error_code == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"last_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": EPOCH}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": EPOCH + 1, "pre_vote": True}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": EPOCH, "pre_vote": True}, ErrorCode.NONE),
        ({"epoch": EPOCH - 1, "last_offset_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH - 1, "last_offset_epoch": 3, "candidate_id": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"candidate_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 2}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter_directory_id": directory(9)}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter_directory_id": bytes(16)}, ErrorCode.NONE),
        ({"voter_id": -1, "voter_directory_id": directory(9)}, ErrorCode.NONE),
    ],
)
def test_errors_of_the_partition(fields: dict[str, Any], code: ErrorCode):
    replica = unattached()
    partition = partition_of(replica.ask(vote(**fields)))
    assert ErrorCode(partition.error_code) is code
    assert partition.vote_granted == (code is ErrorCode.NONE)
    assert partition.leader_epoch == EPOCH


def test_the_epoch_is_adopted_before_the_voter_is_checked():
    replica = fetched()
    partition = partition_of(replica.ask(vote(EPOCH + 2, voter_id=7)))
    assert ErrorCode(partition.error_code) is ErrorCode.INVALID_VOTER_KEY
    assert (partition.leader_epoch, partition.leader_id) == (EPOCH + 2, -1)
    assert replica.stored == StoredState(EPOCH + 2)


@pytest.mark.parametrize("make", STATES.values(), ids=STATES)
def test_a_higher_epoch_is_adopted_by_every_state(make: Any):
    replica = make()
    up_to_date = (replica.log.end_offset, replica.log.last_epoch)
    assert partition_of(replica.ask(vote(EPOCH + 3, pre_vote=True, log=up_to_date))).vote_granted
    assert (replica.quorum.state, replica.quorum.epoch) == (State.UNATTACHED, EPOCH + 3)
    assert replica.stored == StoredState(EPOCH + 3), "a pre-vote is no vote, and its epoch is kept"
    assert partition_of(replica.ask(vote(EPOCH + 4, log=up_to_date))).vote_granted
    assert replica.stored == StoredState(EPOCH + 4, -1, 3, directory(3))


# --- each state


@pytest.mark.parametrize(
    ("state", "is_granted"),
    [
        ("unattached", True),
        ("voted", True),
        ("prospective", True),
        ("candidate", True),
        ("leader", False),
        ("follower", True),
        ("fetched", False),
        ("resigned", True),
    ],
)
def test_pre_votes(state: str, is_granted: bool):
    replica = STATES[state]()
    before, stored = replica.quorum.epoch_state, replica.stored
    up_to_date = (replica.log.end_offset, replica.log.last_epoch)
    assert partition_of(replica.ask(vote(pre_vote=True, log=up_to_date))).vote_granted is is_granted
    assert partition_of(replica.ask(vote(pre_vote=True, log=SHORTER))).vote_granted is False
    assert partition_of(replica.ask(vote(pre_vote=True, log=OLDER))).vote_granted is False
    assert replica.quorum.epoch_state is before
    assert replica.stored == stored, "a pre-vote promises nothing"


@pytest.mark.parametrize(
    ("state", "is_granted"),
    [
        ("unattached", True),
        ("voted", False),
        ("prospective", True),
        ("candidate", False),
        ("leader", False),
        ("follower", False),
        ("fetched", False),
        ("resigned", False),
    ],
)
def test_votes(state: str, is_granted: bool):
    replica = STATES[state]()
    assert partition_of(replica.ask(vote())).vote_granted is is_granted
    if is_granted:
        assert replica.stored == StoredState(EPOCH, -1, 3, directory(3))
        assert replica.quorum.state.name.lower() == state
        assert not partition_of(replica.ask(vote(candidate_id=2))).vote_granted
        assert partition_of(replica.ask(vote())).vote_granted, "the same vote may be asked for twice"


@pytest.mark.parametrize("log", [SHORTER, OLDER])
def test_a_log_that_lacks_something_gets_no_vote(log: tuple[int, int]):
    replica = unattached()
    assert not partition_of(replica.ask(vote(log=log))).vote_granted
    assert replica.stored == StoredState(EPOCH)


def test_a_longer_log_of_the_same_epoch_gets_it():
    assert partition_of(unattached().ask(vote(log=(LOG_END + 1, LOG_EPOCH)))).vote_granted


def test_the_one_that_was_voted_for_gets_the_vote_again_after_a_restart():
    replica = voted()
    assert partition_of(replica.ask(vote(candidate_id=2))).vote_granted
    other_disk = vote(candidate_id=2, replica_directory_id=directory(8))
    assert not partition_of(replica.ask(other_disk)).vote_granted


def test_nobody_gets_a_vote_in_an_epoch_whose_leader_is_known():
    replica = prospective()
    replica.ask(vote(EPOCH + 1))
    replica = fetched()
    replica.advance(2_000)
    assert isinstance(replica.quorum.epoch_state, Prospective)
    assert replica.quorum.leader_id == 2
    assert not partition_of(replica.ask(vote())).vote_granted


def test_a_granted_vote_starts_the_election_timeout_anew():
    replica = unattached()
    replica.advance(29)
    replica.ask(vote())
    replica.advance(999)
    assert replica.quorum.state is State.UNATTACHED
    replica.advance(1)
    assert replica.quorum.state is State.PROSPECTIVE


def test_no_vote_leaves_before_it_is_stored():
    replica = unattached()
    replica.defers_stores = True
    assert replica.ask(vote()) is None
    assert replica.ask(vote(candidate_id=2)) is None
    replica.step(StateStored())
    assert [partition_of(each).vote_granted for each in replica.replies.values()] == [True, False]


def test_a_leader_is_told_to_resign_before_its_vote_is_stored():
    """Whatever it appended meanwhile would have the next leader's epoch, and another content."""
    replica = leader()
    replica.defers_stores = True
    assert replica.ask(vote(epoch=EPOCH + 1)) is None
    assert replica.leaders[-1] == (NOBODY, EPOCH + 1)
    told = len(replica.leaders)
    replica.step(StateStored())
    assert len(replica.leaders) == told


def test_a_vote_that_could_not_be_stored_is_not_given():
    replica = unattached()
    replica.defers_stores = True
    replica.ask(vote())
    replica.step(StateNotStored())
    assert replica.replies == {}
    assert replica.ask(vote()) is None


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("make", [unattached, leader, fetched], ids=["unattached", "leader", "follower"])
def test_every_version_of_the_answer_can_be_sent(make: Any, version: int):
    replica = make()
    response = replica.ask(vote(), version)
    received = decode("VoteResponse", version, encode(response, version))
    knows_leader = replica.quorum.leader_id >= 0
    assert bool(received.node_endpoints) == (version >= 1 and knows_leader)


# --- the one who asks


def test_a_prospective_asks_the_others_and_keeps_its_epoch():
    replica = prospective()
    sent = replica.take_sent(VoteRequest)
    assert [(each.to.node_id, each.to.host) for each in sent] == [(2, "host2"), (3, "host3")]
    asked = sent[0].request.topics[0].partitions[0]
    assert (asked.replica_epoch, asked.pre_vote, asked.voter_directory_id) == (EPOCH, True, directory(2))
    assert (asked.last_offset, asked.last_offset_epoch) == (LOG_END, LOG_EPOCH)
    assert replica.stored == StoredState(EPOCH)


def test_a_majority_of_pre_votes_makes_a_candidate_and_one_of_votes_a_leader():
    replica = prospective()
    replica.answer(replica.take_sent(VoteRequest)[0], vote_response(granted=True))
    assert (replica.quorum.state, replica.quorum.epoch) == (State.CANDIDATE, EPOCH + 1)
    assert replica.stored == StoredState(EPOCH + 1, -1, 1, directory(1))
    sent = replica.take_sent(VoteRequest)
    assert not sent[0].request.topics[0].partitions[0].pre_vote
    replica.answer(sent[1], vote_response(granted=True, epoch=EPOCH + 1))
    assert replica.quorum.state is State.LEADER
    assert replica.stored == StoredState(EPOCH + 1, 1), "a leader has no vote"
    assert replica.log.last_epoch == EPOCH + 1
    assert {each.to.node_id for each in replica.take_sent(BeginQuorumEpochRequest)} == {2, 3}


def test_a_candidate_asks_for_votes_only_when_its_own_is_stored():
    replica = prospective()
    replica.defers_stores = True
    sent = replica.take_sent(VoteRequest)
    replica.answer(sent[0], vote_response(granted=True))
    assert replica.take_sent(VoteRequest) == []
    replica.step(StateStored())
    assert len(replica.take_sent(VoteRequest)) == 2


@pytest.mark.parametrize(("make", "state"), [(unattached, State.UNATTACHED), (fetched, State.FOLLOWER)])
def test_refused_pre_votes_lead_back(make: Any, state: State):
    replica = make().advance(2_000)
    assert replica.quorum.state is State.PROSPECTIVE
    for sent in replica.take_sent(VoteRequest):
        replica.answer(sent, vote_response(granted=False, leader_id=replica.quorum.leader_id))
    assert (replica.quorum.state, replica.quorum.epoch) == (state, EPOCH)


def test_unanswered_pre_votes_lead_back_after_the_timeout():
    replica = prospective().advance(1_000)
    assert (replica.quorum.state, replica.quorum.epoch) == (State.UNATTACHED, EPOCH)


def test_a_candidate_that_is_refused_waits_and_asks_for_pre_votes():
    replica = candidate()
    for sent in replica.take_sent(VoteRequest):
        replica.answer(sent, vote_response(granted=False))
    assert replica.quorum.state is State.CANDIDATE
    replica.advance(1_000)
    assert (replica.quorum.state, replica.quorum.epoch) == (State.PROSPECTIVE, EPOCH)
    assert replica.stored == StoredState(EPOCH, -1, 1, directory(1))


def test_a_voter_of_another_name_gives_no_vote():
    replica = candidate()
    first, second = replica.take_sent(VoteRequest)
    replica.answer(first, vote_response(granted=False, error=ErrorCode.INVALID_VOTER_KEY))
    assert replica.take_sent(VoteRequest) == []
    replica.answer(second, vote_response(granted=True))
    assert replica.quorum.state is State.LEADER


@pytest.mark.parametrize("leader_id", [-1, 3])
def test_an_answer_with_a_higher_epoch_is_adopted(leader_id: int):
    replica = candidate()
    (sent, _) = replica.take_sent(VoteRequest)
    response = vote_response(granted=False, epoch=9, leader_id=leader_id, error=ErrorCode.FENCED_LEADER_EPOCH)
    replica.answer(sent, response)
    assert replica.stored == StoredState(9, leader_id)
    assert replica.quorum.state is (State.FOLLOWER if leader_id == 3 else State.UNATTACHED)


def test_a_candidate_follows_the_leader_of_its_epoch():
    replica = candidate()
    replica.answer(replica.take_sent(VoteRequest)[0], vote_response(granted=False, leader_id=3))
    assert replica.quorum.state is State.FOLLOWER
    assert replica.stored == StoredState(EPOCH, 3, 1, directory(1)), "its vote stays"


def test_a_voter_that_cannot_answer_is_asked_again():
    replica = candidate()
    (sent, _) = replica.take_sent(VoteRequest)
    replica.answer(sent, VoteResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE))
    assert replica.take_sent(VoteRequest) == []
    replica.advance(20)
    assert [each.to.node_id for each in replica.take_sent(VoteRequest)] == [2]
    (again,) = [each for each in [sent] if each]
    replica.step(NotAnswered(again.request_id))  # the first one is no longer waited for
    assert replica.quorum.state is State.CANDIDATE


def test_a_voter_without_pre_votes_makes_a_candidate_at_once():
    replica = prospective()
    (sent, _) = replica.take_sent(VoteRequest)
    replica.answer(sent, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert (replica.quorum.state, replica.quorum.epoch) == (State.CANDIDATE, EPOCH + 1)


def test_late_answers_of_an_earlier_round_do_not_count():
    replica = prospective()
    first, second = replica.take_sent(VoteRequest)
    replica.answer(first, vote_response(granted=True))
    replica.answer(second, vote_response(granted=True))
    assert replica.quorum.state is State.CANDIDATE


def test_a_follower_that_knows_its_leader_is_dead_grants_pre_votes():
    replica = follower()
    assert partition_of(replica.ask(vote(pre_vote=True))).vote_granted
