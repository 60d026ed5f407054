"""Fetch, as the leader answers it: replicas of the log read behind their own end, which acknowledges what they have.

========================================================  ===============================================
condition                                                 answer
========================================================  ===============================================
another cluster; another partition                        104; 42, at the top
a wait, offset or epoch below 0, or the epoch too high    42
an epoch below or above the own                           74, 75
not the leader; going down                                6; 8
offset 0, and there is a snapshot                         the newest snapshot's id
offset below the log's start, or another epoch there      the newest snapshot's id
the log differs before the offset                         the diverging epoch, and where it ends here
else                                                      records up to the log's end, the high watermark
========================================================  ===============================================

A fetch that finds nothing new waits until there is, or until its time is over. Only a fetch of the last kind tells the
leader how far a replica has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ottla.core.quorum.events import EpochEnd, Received, SnapshotId
from ottla.core.quorum.messages import METADATA_TOPIC_ID, leader_endpoints
from ottla.core.quorum.replica_progress import UNKNOWN
from ottla.core.quorum.states import Leader
from ottla.core.quorum.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch import FetchRequest, FetchRequestFetchPartition, FetchResponse

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum

_REPLICA_STATE_FROM_VERSION = 15
_ENDPOINTS_FROM_VERSION = 17


class ParkedFetch(msgspec.Struct, frozen=True):
    """A fetch that waits for records or for a higher high watermark."""

    received: Received
    partition: FetchRequestFetchPartition
    until_ms: int


def take_fetch(quorum: Quorum, received: Received) -> None:
    """Answer a fetch, or park it."""
    request: FetchRequest = received.request
    partition = _sole_partition(request)
    if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
        quorum.reply(received, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if partition is None:
        quorum.reply(received, FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    error = _check(quorum, request, partition)
    if error is not ErrorCode.NONE:
        quorum.reply(received, response(quorum, received, error))
        return
    state = quorum.epoch_state
    assert isinstance(state, Leader)
    if (snapshot_id := _needs_snapshot(quorum, partition)) is not None:
        quorum.reply(received, response(quorum, received, snapshot_id=snapshot_id))
    elif (diverging := _diverges(quorum, partition)) is not None:
        quorum.reply(received, response(quorum, received, diverging=diverging))
    else:
        quorum.replica_fetched(state, _replica_key(received, partition), partition.fetch_offset)
        parked = ParkedFetch(received, partition, quorum.now_ms + request.max_wait_ms)
        if not _complete(quorum, parked):
            quorum.parked.append(parked)


def _sole_partition(request: FetchRequest) -> FetchRequestFetchPartition | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    partition = request.topics[0].partitions[0]
    return partition if request.topics[0].topic_id == METADATA_TOPIC_ID and partition.partition == 0 else None


def _replica_key(received: Received, partition: FetchRequestFetchPartition) -> ReplicaKey:
    request: FetchRequest = received.request
    is_new = received.api_version >= _REPLICA_STATE_FROM_VERSION
    return ReplicaKey(
        request.replica_state.replica_id if is_new else request.replica_id, partition.replica_directory_id
    )


def _check(quorum: Quorum, request: FetchRequest, partition: FetchRequestFetchPartition) -> ErrorCode:
    epoch, last_epoch = partition.current_leader_epoch, partition.last_fetched_epoch
    if request.max_wait_ms < 0 or partition.fetch_offset < 0 or not 0 <= last_epoch <= epoch:
        return ErrorCode.INVALID_REQUEST
    return quorum.check_leader(epoch)


def _needs_snapshot(quorum: Quorum, partition: FetchRequestFetchPartition) -> SnapshotId | None:
    """The snapshot that a replica must load before it can go on with the log."""
    log, offset = quorum.log, partition.fetch_offset
    latest, earliest = log.latest_snapshot, log.earliest_snapshot
    if latest is None or earliest is None:
        return None
    is_before_log = (
        offset == 0
        or offset < log.start_offset
        or (offset == log.start_offset and partition.last_fetched_epoch != earliest.epoch)
        or partition.last_fetched_epoch < earliest.epoch
    )
    return latest if is_before_log else None


def _diverges(quorum: Quorum, partition: FetchRequestFetchPartition) -> EpochEnd | None:
    end = quorum.log.end_offset_for_epoch(partition.last_fetched_epoch)
    if partition.fetch_offset == 0:
        return None  # an empty log differs from none
    is_equal = end.epoch == partition.last_fetched_epoch and end.end_offset >= partition.fetch_offset
    return None if is_equal else end


def _complete(quorum: Quorum, parked: ParkedFetch) -> bool:
    """Answer a fetch if there is something to say."""
    partition, log = parked.partition, quorum.log
    has_records = partition.fetch_offset < log.end_offset
    if not has_records and partition.high_watermark >= quorum.told_high_watermark and parked.until_ms > quorum.now_ms:
        return False
    max_bytes = min(parked.received.request.max_bytes, quorum.settings.fetch_max_bytes)
    records = log.read(partition.fetch_offset, max_bytes) if has_records else b""
    quorum.reply(parked.received, response(quorum, parked.received, records=records))
    return True


def poll_parked(quorum: Quorum) -> None:
    """Answer the parked fetches that there is news for, or whose time is over."""
    waiting = [each for each in quorum.parked if not _complete(quorum, each)]
    quorum.parked[:] = waiting
    for each in waiting:
        quorum.wake_at(each.until_ms)


def refuse_parked(quorum: Quorum) -> None:
    """This node no longer leads."""
    for each in quorum.parked:
        quorum.reply(each.received, response(quorum, each.received, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    quorum.parked.clear()


def response(
    quorum: Quorum,
    received: Received,
    error: ErrorCode = ErrorCode.NONE,
    *,
    snapshot_id: SnapshotId | None = None,
    diverging: EpochEnd | None = None,
    records: Any = b"",  # noqa: ANN401
) -> FetchResponse:
    kind = FetchResponse
    partition = kind.PartitionData(
        0,
        error,
        UNKNOWN if error else quorum.told_high_watermark,
        log_start_offset=quorum.log.start_offset,
        current_leader=kind.LeaderIdAndEpoch(quorum.leader_id, quorum.epoch),
        records=records,
    )
    if snapshot_id is not None:
        partition = msgspec.structs.replace(partition, snapshot_id=kind.SnapshotId(*snapshot_id))
    if diverging is not None:
        end = kind.EpochEndOffset(diverging.epoch, diverging.end_offset)
        partition = msgspec.structs.replace(partition, diverging_epoch=end)
    has_endpoints = received.api_version >= _ENDPOINTS_FROM_VERSION
    return kind(
        responses=(kind.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        node_endpoints=leader_endpoints(quorum, received, kind) if has_endpoints else (),
    )
