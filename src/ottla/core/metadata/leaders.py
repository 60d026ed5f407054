"""ElectLeaders: partitions get the leader that somebody asks for, one by one.

A preferred election makes the first replica the leader, if it is in sync; an unclean one gives a partition without a
leader any replica that lives. Whoever asks for all partitions hears only of those where something was to be done.
"""

from __future__ import annotations

from typing import Final

from ottla.core.metadata.checks import check_cluster_access, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.elections import Election, change_partition, terms_for
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import NO_LEADER, PartitionImage, TopicImage
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
)

_TYPES: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
_NOT_NEEDED: Final = "Leader election not needed for topic partition."
_UNAVAILABLE: Final = {
    Election.PREFERRED: (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "The preferred leader was not available.",
    ),
    Election.UNCLEAN: (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}

_Answer = ElectLeadersResponsePartitionResult


def elect_leaders(state: ControllerState, request: ElectLeadersRequest, context: Context) -> Result:
    """ElectLeaders."""
    check_cluster_access(context, Operation.ALTER)
    election = _TYPES.get(request.election_type)
    if election is None:
        raise Reject(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    records: list[Versioned] = []
    topics = []
    for name, numbers in _asked(state, request):
        answers = [_elect(state, name, number, election, records) for number in numbers]
        if request.topic_partitions is None:
            answers = [each for each in answers if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        topics.append(ElectLeadersResponse.ReplicaElectionResult(name, tuple(answers)))
    check_size(len(records))
    return Result(tuple(records), ElectLeadersResponse(replica_election_results=tuple(topics)), is_atomic=False)


def refuse_elect_leaders(request: ElectLeadersRequest, reject: Reject) -> ElectLeadersResponse:
    """One error for everything that was asked."""
    topics = tuple(
        ElectLeadersResponse.ReplicaElectionResult(
            topic.topic, tuple(_Answer(number, reject.code, reject.message) for number in topic.partitions)
        )
        for topic in request.topic_partitions or ()
    )
    return ElectLeadersResponse(error_code=reject.code, replica_election_results=topics)


def _asked(state: ControllerState, request: ElectLeadersRequest) -> list[tuple[str, tuple[int, ...]]]:
    if request.topic_partitions is None:
        return [(topic.name, tuple(topic.partitions)) for topic in state.image.topics_by_id.values()]
    return [(topic.topic, topic.partitions) for topic in request.topic_partitions]


def _elect(
    state: ControllerState, name: str, number: int, election: Election, records: list[Versioned]
) -> ElectLeadersResponsePartitionResult:
    try:
        records.append(_elected(state, *_find(state, name, number), election))
    except Reject as reject:
        return _Answer(number, reject.code, reject.message)
    return _Answer(number, ErrorCode.NONE, None)


def _elected(state: ControllerState, topic: TopicImage, partition: PartitionImage, election: Election) -> Versioned:
    if _is_led(partition, election):
        raise Reject(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    record = change_partition(topic.topic_id, partition, partition, terms_for(state, topic, partition, election))
    if record is None:
        raise Reject(*_UNAVAILABLE[election])
    return record


def _find(state: ControllerState, name: str, number: int) -> tuple[TopicImage, PartitionImage]:
    topic = state.image.topic(name)
    if topic is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    return topic, partition


def _is_led(partition: PartitionImage, election: Election) -> bool:
    """Whether it has the leader that the election would give it at best."""
    if election is Election.PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.leader != NO_LEADER
