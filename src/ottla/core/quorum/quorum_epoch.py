"""BeginQuorumEpoch and EndQuorumEpoch: a leader begins and ends its epoch.

==========================================  ==========================================================================
receiver of BeginQuorumEpoch                effect
==========================================  ==========================================================================
epoch below the own                         74
no leader known, or epoch above the own     FOLLOWER, stored
same leader, more listeners than known      FOLLOWER, anew
another voter is addressed                  125, after the transition
another leader in the same epoch            UNKNOWN_SERVER_ERROR
==========================================  ==========================================================================

A follower that receives EndQuorumEpoch from its leader gives it up at once if it is the first candidate, later if it is
another one.
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
from ottla.core.quorum.states import Follower, Leader, Resigned
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import Listener, ReplicaKey, Voter
from ottla.wire.errors import ErrorCode
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.types.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochResponse,
)

if TYPE_CHECKING:
    from ottla.core.quorum.events import Received
    from ottla.core.quorum.quorum import Quorum


# --- BeginQuorumEpoch


def answer_begin(quorum: Quorum, received: Received) -> BeginQuorumEpochResponse:
    kind, request = BeginQuorumEpochResponse, received.request
    partition = sole_partition(request)
    refusal = refuse_request(quorum, request, partition)
    if refusal is not None:
        return kind(error_code=refusal)
    error = _follow(quorum, partition, request.leader_endpoints)
    if error is ErrorCode.NONE and not is_addressed(quorum, request.voter_id, partition.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    response: BeginQuorumEpochResponse = epoch_response(quorum, received, kind, error)
    return response


def _follow(quorum: Quorum, partition: Any, endpoints: tuple[Any, ...]) -> ErrorCode:  # noqa: ANN401
    """What both messages have in common: the leader and epoch that they name."""
    if partition.leader_epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if partition.leader_id < 0:
        return ErrorCode.INVALID_REQUEST
    listeners = tuple(Listener(each.name, each.host, each.port) for each in endpoints)
    quorum.hear_of(partition.leader_epoch, partition.leader_id, listeners)
    return ErrorCode.NONE


def poll_begin(quorum: Quorum, state: Leader) -> None:
    """Tell the voters that have been silent for a while who leads."""
    for voter in quorum.control.voters.voters:
        if quorum.is_self(voter):
            continue
        progress = state.progress.of(voter.key)
        if progress.begin_at_ms > quorum.now_ms:
            quorum.wake_at(progress.begin_at_ms)
        elif (to := quorum.ready_voter(voter)) is not None:
            quorum.send(to, _begin_request(quorum, state, voter))


def _begin_request(quorum: Quorum, state: Leader, voter: Voter) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest
    partition = kind.PartitionData(0, voter.directory_id, quorum.node.voter_id, state.epoch)
    return kind(
        quorum.cluster_id,
        voter.voter_id,
        (kind.TopicData(METADATA_TOPIC, (partition,)),),
        tuple(kind.LeaderEndpoint(each.name, each.host, each.port) for each in quorum.node.listeners),
    )


def take_begun(quorum: Quorum, request: BeginQuorumEpochRequest, response: Any) -> bool:  # noqa: ANN401
    """Returns False if the voter is to be told again, after a pause."""
    state, asked, answer = quorum.epoch_state, request.topics[0].partitions[0], sole_partition(response)
    if response.error_code or answer is None:
        return False
    if quorum.hear_of_answer(answer.leader_epoch, answer.leader_id, response.node_endpoints):
        return True
    if isinstance(state, Leader) and state.epoch == asked.leader_epoch:
        progress = state.progress.of(ReplicaKey(request.voter_id, asked.voter_directory_id))
        progress.begin_at_ms = quorum.now_ms + quorum.settings.begin_epoch_ms
    return True


# --- EndQuorumEpoch


def answer_end(quorum: Quorum, received: Received) -> EndQuorumEpochResponse:
    kind, request = EndQuorumEpochResponse, received.request
    partition = sole_partition(request)
    refusal = refuse_request(quorum, request, partition)
    if refusal is not None:
        return kind(error_code=refusal)
    error = _follow(quorum, partition, request.leader_endpoints)
    state = quorum.epoch_state
    if error is ErrorCode.NONE and isinstance(state, Follower) and state.leader_id == partition.leader_id:
        state.fetch_by_ms = quorum.now_ms + _backoff_ms(quorum, partition)
    response: EndQuorumEpochResponse = epoch_response(quorum, received, kind, error)
    return response


def _backoff_ms(quorum: Quorum, partition: EndQuorumEpochRequestPartitionData) -> int:
    """The wait before this voter stands for election: none for the first candidate, longer for each later one."""
    own, longest_ms = quorum.node, quorum.settings.election_backoff_max_ms
    ids = [each.candidate_id for each in partition.preferred_candidates] or list(partition.preferred_successors)
    if own.voter_id not in ids:
        return longest_ms
    position = ids.index(own.voter_id)
    return 0 if position == 0 else min(longest_ms, (longest_ms >> (len(ids) - 1)) << (position - 1))


def poll_end(quorum: Quorum, state: Resigned) -> None:
    """Tell the voters that have not acknowledged it that the epoch ends."""
    for voter in quorum.control.voters.voters:
        if voter.voter_id in state.unacknowledged and (to := quorum.ready_voter(voter)) is not None:
            quorum.send(to, _end_request(quorum, state))


def _end_request(quorum: Quorum, state: Resigned) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest
    partition = kind.PartitionData(
        0,
        quorum.node.voter_id,
        state.epoch,
        preferred_successors=tuple(each.node_id for each in state.candidates),  # for version 0
        preferred_candidates=tuple(kind.ReplicaInfo(*each) for each in state.candidates),
    )
    return kind(quorum.cluster_id, (kind.TopicData(METADATA_TOPIC, (partition,)),))


def take_ended(quorum: Quorum, voter_id: int, response: Any) -> bool:  # noqa: ANN401
    """Returns False if the voter is to be told again, after a pause."""
    answer = sole_partition(response)
    if response.error_code or answer is None:
        return False
    if quorum.hear_of_answer(answer.leader_epoch, answer.leader_id, response.node_endpoints):
        return True
    if isinstance(quorum.epoch_state, Resigned) and voter_id != NOBODY:
        quorum.epoch_state.unacknowledged.discard(voter_id)
    return True
