"""Votes: who may lead the next epoch.

Checks of a request, in this order:

=====================================================  =========================================
condition                                              answer
=====================================================  =========================================
another cluster; another partition                     104; 42, at the top
offset or its epoch below 0, or the epoch too high     42
an epoch below the own                                 74
a candidate id below 0                                 42
(an epoch above the own is adopted first, also for a pre-vote)
another voter is addressed                             125
else                                                   whether the vote is granted
=====================================================  =========================================

A log is up to date if its last epoch is higher, or the same and its end not before the own.

========================  ===========================================  =================================================
state                     pre-vote granted if                          vote granted if
========================  ===========================================  =================================================
UNATTACHED, PROSPECTIVE   up to date                                   voted for the same; else up to date and no leader
FOLLOWER                  up to date, the leader answered no fetch     never
CANDIDATE, RESIGNED       up to date                                   never
LEADER                    never                                        never
========================  ===========================================  =================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.core.quorum.messages import (
    METADATA_TOPIC,
    epoch_response,
    is_addressed,
    refuse_request,
    sole_partition,
)
from ottla.core.quorum.states import Candidate, Follower, Leader, Prospective, Unattached
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import NO_DIRECTORY, ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.types.vote import VoteRequest, VoteRequestPartitionData, VoteResponse

if TYPE_CHECKING:
    from ottla.core.quorum.events import Received
    from ottla.core.quorum.quorum import Quorum


# --- the voter's side


def answer_vote(quorum: Quorum, received: Received) -> VoteResponse:
    request: VoteRequest = received.request
    partition: VoteRequestPartitionData | None = sole_partition(request)
    refusal = refuse_request(quorum, request, partition)
    if partition is None or refusal is not None:
        return VoteResponse(error_code=refusal or ErrorCode.INVALID_REQUEST)

    def answer(error: ErrorCode, *, granted: bool = False) -> VoteResponse:
        response: VoteResponse = epoch_response(quorum, received, VoteResponse, error, vote_granted=granted)
        return response

    epoch, last_epoch = partition.replica_epoch, partition.last_offset_epoch
    is_too_high = last_epoch > epoch if partition.pre_vote else last_epoch >= epoch
    if partition.last_offset < 0 or last_epoch < 0 or is_too_high:
        return answer(ErrorCode.INVALID_REQUEST)
    if epoch < quorum.epoch:
        return answer(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.replica_id < 0:
        return answer(ErrorCode.INVALID_REQUEST)
    if epoch > quorum.epoch:
        quorum.become_unattached(epoch)
    if not is_addressed(quorum, request.voter_id, partition.voter_directory_id):
        return answer(ErrorCode.INVALID_VOTER_KEY)
    is_up_to_date = (last_epoch, partition.last_offset) >= (quorum.log.last_epoch, quorum.log.end_offset)
    if partition.pre_vote:
        return answer(ErrorCode.NONE, granted=is_up_to_date and _grants_pre_votes(quorum))
    candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    return answer(ErrorCode.NONE, granted=_grants_vote(quorum, candidate, is_up_to_date=is_up_to_date))


def _grants_pre_votes(quorum: Quorum) -> bool:
    state = quorum.epoch_state
    if isinstance(state, Follower):
        return not state.has_fetched
    return not isinstance(state, Leader)


def _grants_vote(quorum: Quorum, candidate: ReplicaKey, *, is_up_to_date: bool) -> bool:
    state = quorum.epoch_state
    if not isinstance(state, Unattached | Prospective):
        return False
    if state.voted is not None:
        is_same_disk = state.voted.directory_id in (NO_DIRECTORY, candidate.directory_id)
        return state.voted.node_id == candidate.node_id and is_same_disk
    if state.leader_id != NOBODY or not is_up_to_date:
        return False
    state.voted = candidate
    state.election_at_ms = quorum.now_ms + quorum.election_timeout()
    return True


# --- the side of the one who asks


def poll_votes(quorum: Quorum, state: Prospective | Candidate) -> None:
    """Ask the voters that have not answered."""
    for voter in quorum.control.voters.voters:
        if voter.voter_id in state.votes.granted or voter.voter_id in state.votes.refused:
            continue
        if (to := quorum.ready_voter(voter)) is not None:
            quorum.send(to, _request(quorum, state, voter.key))


def _request(quorum: Quorum, state: Prospective | Candidate, voter: ReplicaKey) -> VoteRequest:
    kind = VoteRequest
    partition = kind.PartitionData(
        0,
        state.epoch,
        quorum.node.voter_id,
        quorum.node.directory_id,
        voter.directory_id,
        quorum.log.last_epoch,
        quorum.log.end_offset,
        pre_vote=isinstance(state, Prospective),
    )
    return kind(quorum.cluster_id, voter.node_id, (kind.TopicData(METADATA_TOPIC, (partition,)),))


def take_vote(quorum: Quorum, request: VoteRequest, response: Any) -> bool:  # noqa: ANN401
    """Count an answer. Returns False if the voter is to be asked again, after a pause."""
    state = quorum.epoch_state
    asked = request.topics[0].partitions[0]
    is_current = isinstance(state, Prospective if asked.pre_vote else Candidate) and asked.replica_epoch == state.epoch
    if not is_current or not isinstance(state, Prospective | Candidate):
        return True
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION and asked.pre_vote:
        quorum.become_candidate()  # the voter is too old for pre-votes
        return True
    answer = sole_partition(response)
    if response.error_code or answer is None:
        return False
    if quorum.hear_of_answer(answer.leader_epoch, answer.leader_id, response.node_endpoints):
        return True
    if answer.error_code not in (ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY):
        return False
    _count(quorum, state, request.voter_id, is_granted=answer.vote_granted)
    return True


def _count(quorum: Quorum, state: Prospective | Candidate, voter_id: int, *, is_granted: bool) -> None:
    """A vote never changes; a refused pre-vote may be granted later."""
    votes = state.votes
    if is_granted and (isinstance(state, Prospective) or voter_id not in votes.refused):
        votes.granted.add(voter_id)
        votes.refused.discard(voter_id)
    elif voter_id not in votes.granted:
        votes.refused.add(voter_id)
    quorum.count_votes()
