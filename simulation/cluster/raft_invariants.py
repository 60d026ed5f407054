"""What must hold of the quorum of whole nodes, at every step that one of them takes.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
one leader                 an epoch has one leader
one vote                   a disk grants one vote in an epoch, however often its node starts, and knows it
stored first               a message speaks of no epoch, vote or record that is not synced on the sender's disk
committed stays            what was committed at an offset once is committed there on every node for ever
majority                   the high watermark of a leader is on the disks of a majority of its voters
high watermark             never falls in a life
applied committed          a node's image has nothing that is not committed
one change                 the voters behind a leader's high watermark differ in one voter at most
snapshot committed         a snapshot ends where the log is committed
=========================  ===========================================================================================
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.core.quorum.events import Actions, Send
from ottla.core.quorum.states import Follower, Leader, Prospective, Unattached
from ottla.core.quorum.stored import FILE_NAME as QUORUM_STATE
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.testing.trace import Violation
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.vote import VoteRequest
from simulation.quorum.invariants import uncommitted_changes

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.core.metadata.image import MetadataImage
    from simulation.cluster.machine import Machine
    from simulation.cluster.world import ClusterWorld

__all__ = ["Batch", "RaftInvariants", "read_batches"]

_read_stored: Final = lru_cache(maxsize=100)(read_stored)
_HEADER: Final = struct.Struct(">qiiBiHi")


class Batch(NamedTuple):
    """A batch of the metadata log."""

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


def read_batches(content: bytes) -> list[Batch]:
    """The batches in a segment; what is torn at its end is none."""
    found, position = [], 0
    while position + _HEADER.size <= len(content):
        base, size, epoch, magic, _, _, last_delta = _HEADER.unpack_from(content, position)
        data = content[position : position + 12 + size]
        if magic != 2 or len(data) < 12 + size:
            break
        found.append(Batch(base, base + last_delta + 1, epoch, data))
        position += len(data)
    return found


class RaftInvariants:
    """Watches the quorums of all nodes of a world."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self.leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self.committed: list[Batch] = []
        self._by_base: dict[int, int] = {0: 0}
        """Base offset -> index in `committed`; the next one that is not committed has an index, too."""
        self._high_watermarks: dict[tuple[int, int], int] = {}
        self._synced: dict[int, tuple[tuple[bytes, ...], list[Batch]]] = {}
        self._parsed: dict[int, tuple[bytes, list[Batch]]] = {}
        self._positions: dict[tuple[int, int, int], tuple[str, int]] = {}
        """Where the batch at an offset begins in the files of a life: name and position."""
        self._shown: dict[int, tuple[Any, ...]] = {}

    @property
    def epoch(self) -> int:
        """The highest one that had a leader."""
        return max(self.leaders, default=0)

    @property
    def committed_end_offset(self) -> int:
        return self.committed[-1].end_offset if self.committed else 0

    def watch(self, machine: Machine, node: Node) -> None:
        """Look at every step of a node's quorum, at what its image takes, and at its snapshots."""
        quorum, snapshots = node.raft.quorum, node.raft.snapshots
        step, follow_image, write_steps = quorum.step, node.follow_image, snapshots.write_steps

        def watched_step(event: Any, now_ms: int, wall_ms: int) -> Actions:  # noqa: ANN401
            actions = step(event, now_ms, wall_ms)
            self._stepped(machine, node, actions)
            return actions

        def watched_image(changes: Any) -> None:  # noqa: ANN401
            self._check_committed("applied committed", machine, node.image)
            follow_image(changes)

        def watched_snapshot(image: MetadataImage, **options: Any) -> Any:  # noqa: ANN401
            self._check_committed("snapshot committed", machine, image)
            return write_steps(image, **options)

        quorum.step = watched_step  # type: ignore[method-assign]
        snapshots.write_steps = watched_snapshot  # type: ignore[method-assign]
        node.follow_image = watched_image  # type: ignore[method-assign]

    # --- steps --------------------------------------------------------------------------------------------------------

    def _stepped(self, machine: Machine, node: Node, actions: Actions) -> None:
        quorum = node.raft.quorum
        self._show(machine, node)
        if quorum.is_leader:
            first = self.leaders.setdefault(quorum.epoch, machine.number)
            if first != machine.number:
                raise Violation("one leader", f"n{first} and {machine.name} lead epoch {quorum.epoch}")
            for changes in uncommitted_changes(quorum, self.committed_end_offset):
                raise Violation("one change", f"{machine.name} has {changes} behind {quorum.high_watermark}")
        self._check_vote(machine, node)
        if actions.high_watermark is not None:
            self._check_high_watermark(machine, node, actions.high_watermark)
        for message in actions.messages:
            if isinstance(message, Send):
                self._check_sent(machine, message.request)

    def _show(self, machine: Machine, node: Node) -> None:
        quorum = node.raft.quorum
        now = (machine.life, quorum.state, quorum.epoch)
        if self._shown.get(machine.number) != now:
            self._shown[machine.number] = now
            self._world.note(f"{machine.name} is {quorum.state.name} in epoch {quorum.epoch}")

    def _stored(self, machine: Machine) -> StoredState | None:
        content = machine.disk.synced(f"{machine.metadata_path}/{QUORUM_STATE}")
        return _read_stored(content) if content else None

    def _check_vote(self, machine: Machine, node: Node) -> None:
        """A vote that is on disk is the only one of its epoch; if that is the present one, it is known."""
        stored = self._stored(machine)
        if stored is None or stored.voted_id < 0:
            return
        first = self._votes.setdefault((machine.number, stored.epoch), stored.voted_id)
        if first != stored.voted_id:
            raise Violation(
                "one vote", f"{machine.name} votes for n{first} and n{stored.voted_id} in epoch {stored.epoch}"
            )
        quorum = node.raft.quorum
        state = quorum.epoch_state
        if quorum.has_failed or not isinstance(state, Unattached | Prospective | Follower):
            return
        if stored.epoch == state.epoch:
            voted_id = -1 if state.voted is None else state.voted.node_id
            if voted_id != stored.voted_id:
                raise Violation(
                    "one vote", f"{machine.name} has voted for n{stored.voted_id}, and knows of n{voted_id}"
                )

    # --- the log ------------------------------------------------------------------------------------------------------

    def synced_log(self, machine: Machine) -> list[Batch]:
        """The metadata log on a disk, as far as it is synced."""
        disk = machine.disk
        paths = sorted(path for path in disk.synced_paths(machine.metadata_path) if path.endswith(".log"))
        contents = tuple(disk.synced(path) or b"" for path in paths)
        known, batches = self._synced.get(machine.number, ((), []))
        if len(known) != len(contents) or any(a is not b for a, b in zip(known, contents, strict=True)):
            batches = [batch for content in contents for batch in self._parse(machine, content)]
            self._synced[machine.number] = (contents, batches)
        return batches

    def _parse(self, machine: Machine, content: bytes) -> list[Batch]:
        """The batches of a segment that mostly has only grown since it was parsed last."""
        parsed, batches = self._parsed.get(machine.number, (b"", []))
        if not parsed or not content.startswith(parsed):
            parsed, batches = b"", []
        batches = batches + read_batches(content[len(parsed) :])
        size = sum(len(batch.data) for batch in batches)
        self._parsed[machine.number] = (content[:size], batches)
        return batches

    def written_log(self, machine: Machine, offset: int) -> list[Batch]:
        """The metadata log on a disk, synced or not, from a batch on that begins at an offset (or from the start)."""
        name, position = self._positions.get((machine.number, machine.life, offset), ("", 0))
        found: list[Batch] = []
        for entry in sorted(machine.disk.list_directory(machine.metadata_path)):
            if entry.name.endswith(".log") and entry.name >= name:
                start = position if entry.name == name else 0
                content = machine.disk.open(f"{machine.metadata_path}/{entry.name}").read(entry.size_bytes, start)
                batches = read_batches(content)
                for batch in batches:
                    start += len(batch.data)
                    self._positions[machine.number, machine.life, batch.end_offset] = (entry.name, start)
                found += batches
        return found

    def _check_high_watermark(self, machine: Machine, node: Node, high_watermark: int) -> None:
        key = (machine.number, machine.life)
        before = self._high_watermarks.get(key, 0)
        if high_watermark < before:
            raise Violation("high watermark", f"of {machine.name} falls from {before} to {high_watermark}")
        self._high_watermarks[key] = high_watermark
        batches = self.written_log(machine, before)
        for batch in batches:
            if before <= batch.base_offset and batch.end_offset <= high_watermark:
                self._compare(machine, batch)
        if node.raft.is_leader and high_watermark > before:
            self._check_majority(machine, node, high_watermark, batches)

    def _compare(self, machine: Machine, batch: Batch) -> None:
        """A batch that a node holds for committed must be the one that is; a first one is remembered."""
        index = self._by_base.get(batch.base_offset)
        if index == len(self.committed):
            self.committed.append(batch)
            self._by_base[batch.end_offset] = len(self.committed)
        elif index is None or self.committed[index] != batch:
            raise Violation(
                "committed stays",
                f"{machine.name} has {batch.base_offset}..{batch.end_offset - 1} of epoch {batch.epoch}, committed is "
                f"{'nothing that begins there' if index is None else self.committed[index][:3]}",
            )

    def _check_majority(self, machine: Machine, node: Node, high_watermark: int, batches: list[Batch]) -> None:
        quorum = node.raft.quorum
        voters, last = quorum.control.voters, high_watermark - 1
        epoch = _epoch_at(batches, last)
        having = [each for each in voters.ids if self._has(self._world.machines[each], last, epoch)]
        if len(having) < voters.majority:
            raise Violation(
                "majority", f"{machine.name} commits {last}, which only {having} of {list(voters.ids)} have on disk"
            )
        state = quorum.epoch_state
        if isinstance(state, Leader) and high_watermark <= state.start_offset:
            raise Violation("majority", f"{machine.name} commits {last}, and its epoch begins at {state.start_offset}")

    def _has(self, machine: Machine, offset: int, epoch: int | None) -> bool:
        batches = self.synced_log(machine)
        return _epoch_at(batches, offset) == epoch or bool(batches and batches[0].base_offset > offset)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _check_sent(self, machine: Machine, request: Any) -> None:  # noqa: ANN401
        stored = self._stored(machine)
        if isinstance(request, VoteRequest):
            asked = request.topics[0].partitions[0]
            has_voted = stored is not None and (stored.epoch, stored.voted_id) == (asked.replica_epoch, machine.number)
            if not asked.pre_vote and not has_voted:
                raise Violation("stored first", f"{machine.name} says Vote in epoch {asked.replica_epoch}: {stored}")
        elif isinstance(request, BeginQuorumEpochRequest):
            epoch = request.topics[0].partitions[0].leader_epoch
            if stored is None or (stored.epoch, stored.leader_id) != (epoch, machine.number):
                raise Violation("stored first", f"{machine.name} says it leads epoch {epoch}: {stored}")
        elif isinstance(request, FetchRequest):
            fetched = request.topics[0].partitions[0]
            batches = self.synced_log(machine)
            end_offset = batches[-1].end_offset if batches else 0
            is_stored = fetched.fetch_offset <= end_offset or self._has_snapshot(machine, fetched.fetch_offset)
            if is_stored and batches and batches[0].base_offset < fetched.fetch_offset <= end_offset:
                is_stored = _epoch_at(batches, fetched.fetch_offset - 1) == fetched.last_fetched_epoch
            if not is_stored:
                raise Violation(
                    "stored first", f"{machine.name} says Fetch at {fetched.fetch_offset}, synced is {end_offset}"
                )

    def _has_snapshot(self, machine: Machine, end_offset: int) -> bool:
        prefix = f"{machine.metadata_path}/{end_offset:020}-"
        paths = machine.disk.synced_paths(machine.metadata_path)
        return any(path.startswith(prefix) and path.endswith(".checkpoint") for path in paths)

    # --- the image ----------------------------------------------------------------------------------------------------

    def _check_committed(self, name: str, machine: Machine, image: MetadataImage) -> None:
        end_offset = image.last_offset + 1
        if end_offset > self.committed_end_offset:
            raise Violation(name, f"{machine.name} is at {end_offset}, committed is {self.committed_end_offset}")


def _epoch_at(batches: list[Batch], offset: int) -> int | None:
    for batch in reversed(batches):
        if batch.base_offset <= offset < batch.end_offset:
            return batch.epoch
        if batch.end_offset <= offset:
            break
    return None
