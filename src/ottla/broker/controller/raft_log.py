"""The metadata log on this node's disk, and the state machine of the quorum that drives it.

An event goes into `Quorum`; the writes that it asks for are done in threads, and their ends are the next events.
Nothing is counted before it is stored: the first records of an epoch are appended when quorum-state is on disk, and the
high watermark rises over records that are synced. One sync runs at a time; what is appended meanwhile goes with the
next.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from ottla.broker.controller.metadata_load import LoadedMetadata
from ottla.broker.loop.clock import Clock
from ottla.broker.loop.offload import Job, Offload
from ottla.core.quorum.quorum import (
    AppendControl,
    Appended,
    AppendFailed,
    Event,
    Quorum,
    Start,
    StateNotStored,
    StateStored,
    Stop,
    StoreState,
)
from ottla.core.quorum.stored import FILE_NAME as QUORUM_STATE
from ottla.core.quorum.voter_changes import add_voter, remove_voter
from ottla.core.quorum.voters import Listener, Voter
from ottla.log.disk import replace_file
from ottla.log.errors import StorageError
from ottla.log.flush import Flush
from ottla.log.producer_state import Origin
from ottla.log.retention import apply_retention
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest

__all__ = ["RaftListener", "RaftLog"]

log = logging.getLogger(__name__)


class RaftListener(Protocol):
    """Who is told what becomes of the log."""

    def committed(self, end_offset: int) -> None:
        """Everything below an offset is committed."""

    def resigned(self) -> None:
        """This node no longer leads: what it had appended may be lost."""

    def failed(self, reason: str) -> None:
        """The log cannot be written."""


class RaftLog:
    """The metadata log of one node."""

    def __init__(self, loaded: LoadedMetadata, voter: Voter, cluster_id: str, clock: Clock, offload: Offload) -> None:
        self.directory = loaded.directory
        self.partition = loaded.partition
        self.snapshots = loaded.snapshots
        self.last_timestamp_ms = loaded.replay.last_timestamp_ms
        self.bytes_since_snapshot = 0
        self.quorum = Quorum(
            voter,
            loaded.replay.control,
            stored=loaded.stored,
            log_end_offset=loaded.partition.log_end_offset,
            log_epoch=loaded.log_epoch,
        )
        self._cluster_id = cluster_id
        self._clock = clock
        self._offload = offload
        self._listener: RaftListener | None = None
        self._job: Job | None = None

    @property
    def end_offset(self) -> int:
        return self.partition.log_end_offset

    @property
    def is_leader(self) -> bool:
        return self.quorum.is_leader

    @property
    def leader(self) -> Listener | None:
        """Where the leader listens, if it is another node and known."""
        if self.is_leader:
            return None
        voters = {each.voter_id: each for each in self.quorum.control.voters.voters}
        leader = voters.get(self.quorum.leader_id)
        return leader.listeners[0] if leader is not None and leader.listeners else None

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    def start(self, listener: RaftListener) -> None:
        """Stand for election. What is committed from now on is told to the listener."""
        self._listener = listener
        self._step(Start())

    def append(self, batches: Sequence[bytes]) -> int:
        """Append batches of the leader; returns the new end. They are synced soon. StorageError if the disk fails."""
        for batch in batches:
            self._append(batch)
        self.sync_soon()
        return self.end_offset

    def answer(self, request: object, api_version: int) -> object:
        """Answer a request about the quorum itself."""
        if isinstance(request, AddRaftVoterRequest):
            return add_voter(self.quorum, request, self._cluster_id)
        if isinstance(request, RemoveRaftVoterRequest):
            return remove_voter(self.quorum, request, self._cluster_id)
        assert isinstance(request, DescribeQuorumRequest)
        return self.quorum.describe(request, api_version, self._clock.wall_ms())

    def drop_below(self, offset: int) -> None:
        """Raise the log start to an offset that a snapshot covers; delete segments below it."""
        self.partition.increment_log_start_offset(offset)
        apply_retention(self.partition, self._clock.wall_ms())

    def close(self) -> None:
        """Sync everything; write nothing more in this epoch."""
        self._step(Stop())
        self.partition.close()

    # --- events and writes --------------------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        was_leader = self.quorum.is_leader
        actions = self.quorum.step(event, self._clock.wall_ms())
        for write in actions.writes:
            if isinstance(write, StoreState):
                self._store(write.content)
            elif isinstance(write, AppendControl):
                self.quorum.log_end_offset = self.append([write.batch])
        if was_leader and not self.quorum.is_leader and self._listener is not None:
            self._listener.resigned()
        if actions.high_watermark is not None:
            self.partition.update_high_watermark(actions.high_watermark)
            if self._listener is not None:
                self._listener.committed(actions.high_watermark)

    def _store(self, content: bytes) -> None:
        path = f"{self.partition.directory.path}/{QUORUM_STATE}"
        failures: list[OSError] = []

        def work() -> None:
            try:
                replace_file(self.directory.disk, path, content)
            except OSError as error:
                failures.append(error)

        def then() -> None:
            for error in failures:
                self._step(StateNotStored())
                self._fail(f"{path} cannot be written: {error}")
                return
            self._step(StateStored())

        self._offload(work, then)

    def _append(self, batch: bytes) -> None:
        now_ms = self._clock.wall_ms()
        try:
            self.partition.append_as_follower(batch, self.quorum.epoch, now_ms, origin=Origin.RAFT_LEADER)
        except StorageError as error:
            self._step(AppendFailed())
            self._fail(f"the metadata log cannot be written: {error}")
            raise
        self.bytes_since_snapshot += len(batch)
        self.last_timestamp_ms = now_ms

    def sync_soon(self) -> None:
        """Sync what was appended, in a thread."""
        if self._job is not None or self.quorum.high_watermark >= self.end_offset:
            return
        try:
            flush = self.partition.prepare_flush()
        except StorageError as error:
            self._fail(f"the metadata log cannot be written: {error}")
            return
        self._job = self._offload(flush.run, lambda: self._synced(flush))

    def _synced(self, flush: Flush) -> None:
        self._job = None
        end_offset = flush.end_offset
        if not self.partition.finish_flush(flush, self._clock.wall_ms()):
            self._step(AppendFailed())
            self._fail(f"the metadata log cannot be synced: {flush.error}")
            return
        self._step(Appended(end_offset))
        if self.quorum.is_leader:
            self.sync_soon()

    def _fail(self, reason: str) -> None:
        if self._listener is not None:
            self._listener.failed(reason)
