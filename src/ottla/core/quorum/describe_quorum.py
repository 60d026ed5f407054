"""DescribeQuorum: the leader's view of voters and observers.

A replica that has not fetched from this leader shows -1 three times. The leader's own row has the time of the answer.
An observer that has been silent for five minutes is dropped when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.quorum.messages import METADATA_TOPIC
from ottla.core.quorum.replica_progress import UNKNOWN, Progress
from ottla.core.quorum.states import Leader
from ottla.core.quorum.voters import NO_DIRECTORY, ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseNode,
    DescribeQuorumResponseReplicaState,
)

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum

_DIRECTORIES_FROM_VERSION: Final = 2  # and nodes, and messages with errors
_TIMES_FROM_VERSION: Final = 1


def describe(
    quorum: Quorum, request: DescribeQuorumRequest, api_version: int, now_ms: int, wall_ms: int
) -> DescribeQuorumResponse:
    """The answer to DescribeQuorum, from this node's point of view."""
    asked = [
        (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    if asked != [(METADATA_TOPIC, 0)]:
        return _error(request, api_version, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    state = quorum.epoch_state
    if not isinstance(state, Leader):
        return _error(request, api_version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    kind, rows = DescribeQuorumResponse, _Rows(quorum, api_version, now_ms, wall_ms)
    partition = kind.PartitionData(
        leader_id=quorum.node.voter_id,
        leader_epoch=state.epoch,
        high_watermark=quorum.told_high_watermark,
        current_voters=rows.voters(state),
        observers=rows.observers(state),
    )
    nodes = _nodes(quorum) if api_version >= _DIRECTORIES_FROM_VERSION else ()
    return kind(topics=(kind.TopicData(METADATA_TOPIC, (partition,)),), nodes=nodes)


class _Rows:
    def __init__(self, quorum: Quorum, api_version: int, now_ms: int, wall_ms: int) -> None:
        self._quorum = quorum
        self._has_directories = api_version >= _DIRECTORIES_FROM_VERSION
        self._has_times = api_version >= _TIMES_FROM_VERSION
        self._now_ms = now_ms
        self._wall_ms = wall_ms

    def voters(self, state: Leader) -> tuple[DescribeQuorumResponseReplicaState, ...]:
        return tuple(
            self._own_row(voter.key)
            if self._quorum.is_self(voter)
            else self._row(voter.key, state.progress.of(voter.key))
            for voter in self._quorum.control.voters.voters
        )

    def observers(self, state: Leader) -> tuple[DescribeQuorumResponseReplicaState, ...]:
        voters = self._quorum.control.voters
        state.progress.drop_silent(voters, self._now_ms - self._quorum.settings.observer_session_ms)
        rows = [self._row(key, each) for key, each in state.progress.items() if voters.find(*key) is None]
        if voters.find(*self._quorum.key) is None:
            rows.append(self._own_row(self._quorum.key))
        return tuple(rows)

    def _own_row(self, key: ReplicaKey) -> DescribeQuorumResponseReplicaState:
        return self._row(key, Progress(self._quorum.log.end_offset, self._now_ms, self._now_ms))

    def _row(self, key: ReplicaKey, progress: Progress) -> DescribeQuorumResponseReplicaState:
        return DescribeQuorumResponse.ReplicaState(
            key.node_id,
            key.directory_id if self._has_directories else NO_DIRECTORY,
            progress.end_offset,
            self._time(progress.last_fetch_ms),
            self._time(progress.last_caught_up_ms),
        )

    def _time(self, at_ms: int) -> int:
        if not self._has_times or at_ms == UNKNOWN:
            return UNKNOWN
        return self._wall_ms - (self._now_ms - at_ms)


def _nodes(quorum: Quorum) -> tuple[DescribeQuorumResponseNode, ...]:
    """The listeners of the voters; the leader knows its own best."""
    kind = DescribeQuorumResponse
    known = [
        (voter.voter_id, quorum.node if quorum.is_self(voter) else voter) for voter in quorum.control.voters.voters
    ]
    return tuple(
        kind.Node(voter_id, tuple(kind.Listener(each.name, each.host, each.port) for each in voter.listeners))
        for voter_id, voter in known
    )


def _error(request: DescribeQuorumRequest, api_version: int, code: ErrorCode) -> DescribeQuorumResponse:
    """Every partition that was asked for, with one error."""
    kind = DescribeQuorumResponse
    message = None if api_version >= _DIRECTORIES_FROM_VERSION else ""
    return kind(
        topics=tuple(
            kind.TopicData(
                topic.topic_name,
                tuple(kind.PartitionData(each.partition_index, code, message) for each in topic.partitions),
            )
            for topic in request.topics
        )
    )
