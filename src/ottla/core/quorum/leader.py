"""A leader: the first records of its epoch, the high watermark, whom it hears.

The high watermark is the offset that a majority of the voters has on disk. It rises only past the start of the leader's
epoch, so records of earlier leaders are committed together with the LeaderChange of this one. The newest voters in the
log count, committed or not; a leader that they do not name goes on without counting itself until they are committed,
and resigns then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.quorum.fetch import poll_parked
from ottla.core.quorum.quorum_epoch import poll_begin
from ottla.core.quorum.replica_progress import UNKNOWN
from ottla.core.quorum.states import Leader
from ottla.core.quorum.voter_changes import poll_pending_change
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ReplicaKey, voters_record
from ottla.wire.batch import ControlRecordType
from ottla.wire.types.control_records import KRaftVersionRecord, LeaderChangeMessage

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum


def first_records(quorum: Quorum, state: Leader) -> list[tuple[ControlRecordType, object]]:
    """What an epoch begins with: its leader, and the voters if the log has none or this one has moved."""
    control, node = quorum.control, quorum.node
    leader = LeaderChangeMessage(
        leader_id=node.voter_id,
        voters=tuple(LeaderChangeMessage.Voter(voter_id) for voter_id in control.voters.ids),
        granting_voters=tuple(LeaderChangeMessage.Voter(voter_id) for voter_id in state.granting),
    )
    messages: list[tuple[ControlRecordType, object]] = [(ControlRecordType.LEADER_CHANGE, leader)]
    has_moved = quorum.is_voter and control.voters.find(*node.key) != node
    if control.kraft_version >= 1 and (control.voters_offset == BOOTSTRAP_OFFSET or has_moved):
        version = KRaftVersionRecord(k_raft_version=control.kraft_version)
        updated = voters_record(control.voters.with_voter(node) if has_moved else control.voters)
        messages += [(ControlRecordType.KRAFT_VERSION, version), (ControlRecordType.KRAFT_VOTERS, updated)]
    return messages


def poll_leader(quorum: Quorum, state: Leader) -> None:
    voters = quorum.control.voters
    _advance(quorum, state)
    if not quorum.is_voter and state.high_watermark is not None and quorum.control.voters_offset < state.high_watermark:
        poll_pending_change(quorum, state)
        quorum.resign()
        return
    if any(not quorum.is_self(voter) for voter in voters.voters):
        if quorum.now_ms >= state.progress.majority_by_ms:
            quorum.resign()
            return
        quorum.wake_at(state.progress.majority_by_ms)
    poll_pending_change(quorum, state)
    poll_begin(quorum, state)
    poll_parked(quorum)


def _advance(quorum: Quorum, state: Leader) -> None:
    reached = state.progress.high_watermark(quorum.control.voters, quorum.key, quorum.synced_end_offset)
    if reached > state.start_offset and reached > (state.high_watermark or UNKNOWN):
        state.high_watermark = reached
        quorum.raise_high_watermark(reached)


def replica_fetched(quorum: Quorum, state: Leader, key: ReplicaKey, offset: int) -> None:
    """A replica has everything before an offset. Readers without an id are not remembered."""
    if key.node_id < 0 or key == quorum.key:
        return
    voter = quorum.control.voters.find(*key)
    progress = state.progress.of(key if voter is None else voter.key)
    progress.fetched(offset, quorum.log.end_offset, quorum.now_ms)
    progress.begin_at_ms = quorum.now_ms + quorum.settings.begin_epoch_ms
    voter_heard(quorum, state, key)
    _advance(quorum, state)


def voter_heard(quorum: Quorum, state: Leader, key: ReplicaKey) -> None:
    voters = quorum.control.voters
    if voters.find(*key) is not None:
        deadline_ms = quorum.now_ms + quorum.settings.check_quorum_ms
        state.progress.heard(key.node_id, voters, quorum.node.voter_id, deadline_ms)
