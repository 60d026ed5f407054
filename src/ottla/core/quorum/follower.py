"""A follower copies its leader's log.

The end of its log is in every Fetch and acknowledges what is before it, so a follower syncs everything before it
fetches again. One Fetch or FetchSnapshot is on its way at a time; it goes to a bootstrap server while the leader does
not answer.

===============================  ===========================================================================
answer to Fetch                  effect
===============================  ===========================================================================
records                          append those of the leader's epoch and below; the high watermark follows
a diverging epoch                cut the log where both still agree, at most; then fetch again
a snapshot's id                  download it with FetchSnapshot; it replaces the whole log
74, 6, or a higher epoch         adopt the epoch and the leader
75 and others                    fetch again after a pause
===============================  ===========================================================================

A download is given up when the leader answers FetchSnapshot with an error: the next Fetch tells of a newer snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    EpochEnd,
    InstallSnapshot,
    SnapshotId,
    TruncateLog,
)
from ottla.core.quorum.messages import METADATA_TOPIC, METADATA_TOPIC_ID, sole_partition
from ottla.core.quorum.states import Download, Follower
from ottla.core.quorum.voter_changes import poll_voter_changes
from ottla.wire.batch import BatchView, read_control_batch, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum


def poll_follower(quorum: Quorum, state: Follower) -> None:
    if quorum.may_lead:
        if quorum.now_ms >= state.fetch_by_ms:
            quorum.become_prospective()
            return
        quorum.wake_at(state.fetch_by_ms)
    leader = quorum.destination(state.leader_id, state.leader_listeners)
    if quorum.is_ready(leader):
        poll_voter_changes(quorum, state, leader)
    if not quorum.is_log_settled or quorum.is_fetching:
        return
    if quorum.is_ready(leader):
        quorum.send(leader, _snapshot_request(quorum, state) if state.download else fetch_request(quorum))
    elif quorum.is_backing_off(leader):
        poll_bootstrap(quorum)


def poll_bootstrap(quorum: Quorum) -> None:
    """Ask any bootstrap server, or any voter if there is none; if it does not lead, it says who does."""
    servers = quorum.servers
    if quorum.now_ms < quorum.bootstrap_at_ms:
        quorum.wake_at(quorum.bootstrap_at_ms)
    elif servers and quorum.is_log_settled and not quorum.is_fetching:
        quorum.send(servers[quorum.random(len(servers))], fetch_request(quorum))


def fetch_request(quorum: Quorum) -> FetchRequest:
    kind, log, node = FetchRequest, quorum.log, quorum.node
    partition = kind.FetchPartition(
        0,
        quorum.epoch,
        log.end_offset,
        log.last_epoch,
        replica_directory_id=node.directory_id,
        high_watermark=quorum.high_watermark,
    )
    return kind(
        quorum.cluster_id,
        replica_state=kind.ReplicaState(node.voter_id),
        max_wait_ms=quorum.settings.fetch_max_wait_ms,
        max_bytes=quorum.settings.fetch_max_bytes,
        topics=(kind.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )


def _snapshot_request(quorum: Quorum, state: Follower) -> FetchSnapshotRequest:
    kind, download = FetchSnapshotRequest, state.download
    assert download is not None
    partition = kind.PartitionSnapshot(
        0,
        state.epoch,
        kind.SnapshotId(*download.snapshot_id),
        download.position,
        quorum.node.directory_id,
    )
    return kind(
        quorum.cluster_id,
        quorum.node.voter_id,
        quorum.settings.fetch_snapshot_max_bytes,
        (kind.TopicSnapshot(METADATA_TOPIC, (partition,)),),
    )


def _fetch_succeeded(quorum: Quorum, state: Follower) -> None:
    state.has_fetched = True
    state.fetch_by_ms = quorum.now_ms + quorum.settings.fetch_timeout_ms


# --- Fetch


def take_fetched(quorum: Quorum, request: FetchRequest, response: Any) -> bool:  # noqa: ANN401
    """Returns False if the next fetch is to be sent after a pause."""
    if response.error_code or len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return False
    asked, answer = request.topics[0].partitions[0], response.responses[0].partitions[0]
    leader = answer.current_leader
    if quorum.hear_of_answer(leader.leader_epoch, leader.leader_id, response.node_endpoints):
        return True
    if answer.error_code:
        return False
    state = quorum.epoch_state
    is_current = asked.current_leader_epoch == quorum.epoch and asked.fetch_offset == quorum.log.end_offset
    if not isinstance(state, Follower) or leader.leader_id != state.leader_id or not is_current:
        return False
    _fetch_succeeded(quorum, state)
    if answer.diverging_epoch.epoch >= 0:
        _truncate(quorum, EpochEnd(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset))
        return True
    if answer.snapshot_id.end_offset >= 0:
        snapshot_id = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        state.download = Download(snapshot_id)
        quorum.write(BeginSnapshot(snapshot_id))
        return True
    return _append(quorum, state, answer)


def _truncate(quorum: Quorum, diverging: EpochEnd) -> None:
    """Cut the log back to where it may agree with the leader's."""
    log = quorum.log
    if diverging.epoch == 0:
        offset = min(diverging.end_offset, log.end_offset)
    else:
        own = log.end_offset_for_epoch(diverging.epoch)
        offset = min(own.end_offset, diverging.end_offset) if own.epoch == diverging.epoch else own.end_offset
    if offset < quorum.high_watermark:
        raise QuorumError(
            f"the leader of epoch {quorum.epoch} wants the log cut at {offset}, and it is committed up to "
            f"{quorum.high_watermark}: records were lost by a majority of the voters"
        )
    quorum.control.truncate(offset)
    quorum.write_log(TruncateLog(offset), offset)


def _append(quorum: Quorum, state: Follower, answer: Any) -> bool:  # noqa: ANN401
    end_offset, batches = quorum.log.end_offset, []
    if answer.records:
        try:
            for batch in _usable(answer.records, end_offset, state.epoch):
                if batch.is_control:
                    for offset, control in enumerate(read_control_batch(batch), batch.base_offset):
                        quorum.control.replay(control.message, offset)
                batches.append(batch.data)
                end_offset = batch.next_offset
        except WireError:
            pass  # what came before the damage is good; the rest is fetched again
        if not batches:
            return False
        quorum.write_log(AppendRecords(tuple(batches), end_offset), end_offset)
    quorum.raise_high_watermark(min(end_offset, answer.high_watermark))
    return True


def _usable(records: Any, end_offset: int, epoch: int) -> Iterator[BatchView]:  # noqa: ANN401
    """The sound batches that continue the log, up to the first of a later epoch than the leader's."""
    for batch in split_batches(records):
        if not isinstance(batch, BatchView) or batch.base_offset != end_offset or not batch.is_valid:
            return
        if batch.partition_leader_epoch > epoch:
            return
        yield batch
        end_offset = batch.next_offset


# --- FetchSnapshot


def take_fetched_snapshot(quorum: Quorum, request: FetchSnapshotRequest, response: Any) -> bool:  # noqa: ANN401
    """Returns False if the next fetch is to be sent after a pause."""
    state, asked = quorum.epoch_state, request.topics[0].partitions[0]
    answer = sole_partition(response, topic="name", partition="index")
    if response.error_code or answer is None:
        if isinstance(state, Follower):
            state.download = None  # for Apache Kafka 4.3.1 an unknown snapshot is an error at the top
        return False
    leader = answer.current_leader
    if quorum.hear_of_answer(leader.leader_epoch, leader.leader_id, response.node_endpoints):
        return True
    if not isinstance(state, Follower) or state.download is None or asked.current_leader_epoch != state.epoch:
        return True
    download = state.download
    if answer.error_code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        state.download = None
        return True
    is_next = (
        (asked.snapshot_id.end_offset, asked.snapshot_id.epoch) == download.snapshot_id
        and asked.position == answer.position == download.position
    )  # fmt: skip
    if answer.error_code or not is_next or not answer.unaligned_records:
        return False
    _fetch_succeeded(quorum, state)
    quorum.write(AppendSnapshot(download.snapshot_id, answer.unaligned_records))
    download.position += len(answer.unaligned_records)
    if download.position >= answer.size:
        download.is_complete = True
        quorum.write_log(InstallSnapshot(download.snapshot_id), download.snapshot_id.end_offset)
    return True
