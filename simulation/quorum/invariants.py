"""What must hold in a quorum after every step.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
one leader                 an epoch has one leader
one vote                   a disk grants one vote in an epoch, however often its node starts, and knows it
stored first               a message speaks of no epoch, vote, leadership or record that is not on the sender's disk
committed stays            what was committed at an offset once is committed there on every node for ever
leader has all             a new leader's log has everything that was committed in earlier epochs
majority                   the high watermark of a leader is on the disks of a majority of its voters
own epoch                  a leader commits records of earlier epochs only together with one of its own
high watermark             never falls in a life
one change                 the voters behind a leader's high watermark differ in one voter at most
snapshot committed         a snapshot ends where the log is committed, and has the state of that offset
works                      no step raises
described                  in the end DescribeQuorum tells how it is
=========================  ===========================================================================================
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ottla.core.quorum.events import Actions, Reply, Send, SnapshotId
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.states import Follower, Leader, Prospective, Unattached
from ottla.core.quorum.voters import Voter
from ottla.testing.trace import Violation
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.vote import VoteRequest, VoteResponse
from simulation.quorum.node import QuorumNode, snapshot_digest

__all__ = ["Invariants", "uncommitted_changes"]


class Invariants:
    """Watches all nodes of a world."""

    def __init__(self) -> None:
        self.leaders: dict[int, tuple[int, bytes]] = {}
        self._votes: dict[tuple[int, bytes, int], tuple[int, bytes]] = {}
        self._committed: list[tuple[int, int, int]] = []
        """For each committed batch: its end offset, epoch and checksum."""
        self._committed_in: list[int] = []
        """For each committed batch: the epoch in which it was first seen to be committed."""
        self._by_base: dict[int, int] = {0: 0}
        """Base offset -> index in `_committed`; the next one that is not committed has an index, too."""
        self._digests: dict[int, bytes] = {0: b"\0" * 8}
        self._life_high_watermark: dict[tuple[int, int], int] = {}

    @property
    def committed_end_offset(self) -> int:
        return self._committed[-1][0] if self._committed else 0

    def digest(self, end_offset: int) -> bytes:
        """The state of the committed log at an offset."""
        return self._digests.get(end_offset, b"?" * 8)

    # --- steps --------------------------------------------------------------------------------------------------------

    def stepped(self, node: QuorumNode, actions: Actions) -> None:
        quorum = node.quorum
        assert quorum is not None
        self._check_vote(node)
        if quorum.is_leader:
            self._check_leader(node)
        if actions.high_watermark is not None:
            self._check_high_watermark(node, actions.high_watermark)

    def _check_vote(self, node: QuorumNode) -> None:
        """A vote of the present epoch that is on disk is known."""
        quorum, stored = node.quorum, node.stored_state
        assert quorum is not None
        state = quorum.epoch_state
        if stored is None or stored.epoch != state.epoch or stored.voted_id < 0 or quorum.has_failed:
            return
        if isinstance(state, Unattached | Prospective | Follower):
            voted_id = -1 if state.voted is None else state.voted.node_id
            if voted_id != stored.voted_id:
                raise Violation("one vote", f"{node.name} has voted for n{stored.voted_id}, and knows of n{voted_id}")

    def _check_leader(self, node: QuorumNode) -> None:
        quorum, key = node.quorum, (node.node_id, node.directory_id)
        assert quorum is not None
        is_new = quorum.epoch not in self.leaders
        leader = self.leaders.setdefault(quorum.epoch, key)
        if leader != key:
            raise Violation("one leader", f"n{leader[0]} and {node.name} lead epoch {quorum.epoch}")
        if is_new:
            self._check_completeness(node)
        for changes in uncommitted_changes(quorum, self.committed_end_offset):
            raise Violation("one change", f"{node.name} has {changes} behind {quorum.high_watermark}")

    def _check_completeness(self, node: QuorumNode) -> None:
        """One that stood still may win the election of an epoch long past: it lacks what later leaders committed."""
        quorum, log = node.quorum, node.log
        assert quorum is not None
        count = bisect_left(self._committed_in, quorum.epoch)
        needed_end_offset = self._committed[count - 1][0] if count else 0
        if log.end_offset < needed_end_offset:
            raise Violation("leader has all", f"{node.name} ends at {log.end_offset}, committed is {needed_end_offset}")
        for batch in log.batches:
            if batch.base_offset >= needed_end_offset:
                break
            self._compare(node, batch.base_offset, batch.end_offset, batch.epoch, batch.data, "leader has all")

    def _check_high_watermark(self, node: QuorumNode, high_watermark: int) -> None:
        key = (node.node_id, node.life)
        before = self._life_high_watermark.get(key, 0)
        if high_watermark < before:
            raise Violation("high watermark", f"of {node.name} falls from {before} to {high_watermark}")
        self._life_high_watermark[key] = high_watermark
        log = node.log
        for index in range(log._index(before), len(log.batches)):
            batch = log.batches[index]
            if batch.end_offset > high_watermark:
                break
            self._compare(node, batch.base_offset, batch.end_offset, batch.epoch, batch.data, "committed stays")
        if high_watermark > max(log.end_offset, self.committed_end_offset):
            raise Violation(
                "committed stays", f"{node.name} has committed {high_watermark} and ends at {log.end_offset}"
            )

    def _compare(self, node: QuorumNode, base: int, end: int, epoch: int, data: bytes, name: str) -> None:
        """A batch that a node holds for committed must be the one that is; a first one is remembered."""
        index, entry = self._by_base.get(base), (end, epoch, zlib.crc32(data))
        if index is None:
            raise Violation(name, f"{node.name} has a batch at {base}, where the committed log has none that begins")
        if index == len(self._committed):
            if name == "leader has all":
                return
            self._committed.append(entry)
            assert node.quorum is not None
            self._committed_in.append(max(node.quorum.epoch, self._committed_in[-1] if self._committed_in else 0))
            self._by_base[end] = len(self._committed)
            self._digests[end] = zlib.crc32(data, int.from_bytes(self._digests[base], "big") & 0xFFFFFFFF).to_bytes(
                8, "big"
            )
        elif self._committed[index] != entry:
            known = self._committed[index]
            raise Violation(
                name, f"{node.name} has {base}..{end - 1} of epoch {epoch}, committed is ..{known[0] - 1} of {known[1]}"
            )

    def check_majority(self, node: QuorumNode, nodes: dict[int, QuorumNode]) -> None:
        """The records below a leader's high watermark are on the disks of a majority, or were on one that is gone."""
        quorum = node.quorum
        assert quorum is not None
        state = quorum.epoch_state
        if not isinstance(state, Leader) or state.high_watermark is None:
            return
        voters, last = quorum.control.voters, state.high_watermark - 1
        epoch = node.log.epoch_at(last)
        if state.high_watermark <= state.start_offset:
            raise Violation("own epoch", f"{node.name} commits {last}, and its epoch begins at {state.start_offset}")
        having = [voter.voter_id for voter in voters.voters if _has_record(nodes[voter.voter_id], voter, last, epoch)]
        if len(having) < voters.majority:
            raise Violation(
                "majority", f"{node.name} commits {last}, which only {having} of {list(voters.ids)} have on disk"
            )

    # --- messages -----------------------------------------------------------------------------------------------------

    def sent(self, node: QuorumNode, message: Send | Reply) -> None:
        content: Any = message.request if isinstance(message, Send) else message.response
        stored = node.stored_state
        epoch = stored.epoch if stored is not None else 0

        def hold(condition: bool, text: str) -> None:
            if not condition:
                raise Violation("stored first", f"{node.name} says {text}; on disk is {stored}")

        if isinstance(content, VoteRequest):
            asked = content.topics[0].partitions[0]
            has_voted = stored is not None and (stored.epoch, stored.voted_id) == (asked.replica_epoch, node.node_id)
            hold(asked.pre_vote or has_voted, f"Vote in epoch {asked.replica_epoch}")
        elif isinstance(content, BeginQuorumEpochRequest):
            leads = stored is not None and (epoch, stored.leader_id) == (
                content.topics[0].partitions[0].leader_epoch,
                node.node_id,
            )
            hold(leads, "BeginQuorumEpoch")
        elif isinstance(content, FetchRequest):
            synced, fetched = node.disk.synced, content.topics[0].partitions[0]
            hold(fetched.current_leader_epoch <= max(epoch, synced.last_epoch), f"epoch {fetched.current_leader_epoch}")
            is_safe = fetched.fetch_offset <= synced.end_offset
            if is_safe and synced.start_offset < fetched.fetch_offset:
                is_safe = synced.epoch_at(fetched.fetch_offset - 1) == fetched.last_fetched_epoch
            hold(is_safe, f"Fetch at {fetched.fetch_offset}, synced is {synced.end_offset}")

    def granted(self, node: QuorumNode, request: VoteRequest, response: VoteResponse) -> None:
        """A node answers a vote."""
        if not response.topics or not response.topics[0].partitions[0].vote_granted:
            return
        asked = request.topics[0].partitions[0]
        if asked.pre_vote:
            return
        candidate = (asked.replica_id, asked.replica_directory_id)
        key = (node.node_id, node.directory_id, asked.replica_epoch)
        stored = node.stored_state
        if stored is None or (stored.epoch, stored.voted_id) != (asked.replica_epoch, asked.replica_id):
            raise Violation("stored first", f"{node.name} grants n{asked.replica_id} a vote; on disk is {stored}")
        if self._votes.setdefault(key, candidate) != candidate:
            raise Violation("one vote", f"{node.name} votes twice in epoch {asked.replica_epoch}")

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def check_snapshot(self, node: QuorumNode, snapshot_id: SnapshotId) -> None:
        end_offset = snapshot_id.end_offset
        if end_offset > self.committed_end_offset:
            raise Violation(
                "snapshot committed", f"{node.name} snapshots {end_offset}, committed is {self.committed_end_offset}"
            )
        if snapshot_digest(node.log.snapshots[snapshot_id]) != self.digest(end_offset):
            raise Violation("snapshot committed", f"the snapshot of {node.name} at {end_offset} has another state")


def uncommitted_changes(quorum: Quorum, committed_end_offset: int) -> Iterator[list[set[int]]]:
    """The sets of voters that a leader has not committed, if more than one voter changes in them."""
    sets = quorum.control.uncommitted_voters(max(quorum.high_watermark, committed_end_offset))
    keys = [{voter.voter_id for voter in each.voters} for each in sets]
    changes = [before ^ after for before, after in pairwise(keys)]
    if sum(1 for change in changes if change) > 1 or any(len(change) > 1 for change in changes):
        yield keys


def _has_record(node: QuorumNode, voter: Voter, offset: int, epoch: int | None) -> bool:
    synced = node.disk.synced
    is_gone = not voter.is_node(node.node_id, node.directory_id)
    return is_gone or synced.epoch_at(offset) == epoch or synced.start_offset > offset
