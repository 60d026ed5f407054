"""FetchSnapshot, as the leader answers it: a piece of a snapshot's bytes.

==========================================  =================
condition                                   answer
==========================================  =================
another cluster                             104, at the top
another partition                           3
an epoch below or above the own             74, 75
not the leader; going down                  6; 8
no such snapshot, or that of formatting     98
a position outside of it                    99
==========================================  =================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.core.quorum.events import Received, SnapshotId
from ottla.core.quorum.messages import METADATA_TOPIC, leader_endpoints
from ottla.core.quorum.states import Leader
from ottla.core.quorum.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotResponse,
)

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum

_BOOTSTRAP = SnapshotId(0, 0)
_ENDPOINTS_FROM_VERSION = 1


def answer_fetch_snapshot(quorum: Quorum, received: Received) -> FetchSnapshotResponse:
    kind = FetchSnapshotResponse
    request: FetchSnapshotRequest = received.request
    if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
        return kind(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = _metadata_partition(request)
    if partition is None:
        return _unknown_partitions(request)
    asked = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    error = quorum.check_leader(partition.current_leader_epoch)
    size = None if asked == _BOOTSTRAP else quorum.log.snapshot_size(asked)
    if error is not ErrorCode.NONE:
        return _response(quorum, received, asked, error)
    if size is None:
        return _response(quorum, received, asked, ErrorCode.SNAPSHOT_NOT_FOUND)
    if not 0 <= partition.position < size:
        return _response(quorum, received, asked, ErrorCode.POSITION_OUT_OF_RANGE)
    state = quorum.epoch_state
    assert isinstance(state, Leader)
    quorum.voter_heard(state, ReplicaKey(request.replica_id, partition.replica_directory_id))
    max_bytes = max(0, min(request.max_bytes, quorum.settings.fetch_snapshot_max_bytes))
    data = quorum.log.read_snapshot(asked, partition.position, max_bytes)
    return _response(quorum, received, asked, size=size, position=partition.position, unaligned_records=data)


def _metadata_partition(request: FetchSnapshotRequest) -> FetchSnapshotRequestPartitionSnapshot | None:
    """What is asked for; unlike other messages this one may ask for more, which is passed over."""
    named = (each for topic in request.topics if topic.name == METADATA_TOPIC for each in topic.partitions)
    return next((each for each in named if each.partition == 0), None)


def _unknown_partitions(request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    kind, error = FetchSnapshotResponse, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return kind(
        topics=tuple(
            kind.TopicSnapshot(
                topic.name,
                tuple(
                    kind.PartitionSnapshot(each.partition, error, unaligned_records=b"") for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _response(
    quorum: Quorum,
    received: Received,
    asked: SnapshotId,
    error: ErrorCode = ErrorCode.NONE,
    **fields: Any,  # noqa: ANN401
) -> FetchSnapshotResponse:
    kind = FetchSnapshotResponse
    partition = kind.PartitionSnapshot(
        0,
        error,
        kind.SnapshotId(*asked),
        kind.LeaderIdAndEpoch(quorum.leader_id, quorum.epoch),
        **{"unaligned_records": b"", **fields},
    )
    has_endpoints = received.api_version >= _ENDPOINTS_FROM_VERSION
    return kind(
        topics=(kind.TopicSnapshot(METADATA_TOPIC, (partition,)),),
        node_endpoints=leader_endpoints(quorum, received, kind) if has_endpoints else (),
    )
