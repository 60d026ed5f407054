"""Drives the quorum of the metadata log: events in, what they ask for done.

An event goes into `Quorum`. The writes that a step asks for are done in their order, syncs in a thread, and their ends
are the next events; then the messages of the step leave. One event is worked on at a time. One sync runs at a time;
what is appended meanwhile goes with the next.

A process that comes late to a deadline has stood still. Then the silence of the others does not count yet: what they
have sent lies in the sockets, or they stood still as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.broker.controller.metadata_load import LoadedMetadata
from ottla.broker.controller.raft_counts import RaftCounts
from ottla.broker.controller.replicated_log import MetadataLog
from ottla.broker.controller.synced_mark import SyncedMark
from ottla.broker.loop.clock import Clock
from ottla.broker.loop.offload import Job, Offload
from ottla.core.metadata.snapshot import SnapshotId, load_snapshot, read_snapshot
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    Actions,
    Answered,
    AppendControl,
    Appended,
    AppendFailed,
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    Destination,
    Event,
    InstallSnapshot,
    NotAnswered,
    PeerGone,
    QuorumSettings,
    Received,
    Reply,
    Send,
    SnapshotInstalled,
    Start,
    StateNotStored,
    StateStored,
    StoodStill,
    Stop,
    StoreState,
    Synced,
    Tick,
    TruncateLog,
    UpgradeKRaftVersion,
    Write,
)
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.states import State
from ottla.core.quorum.stored import FILE_NAME as QUORUM_STATE
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import Voter
from ottla.log.disk import read_all, replace_file
from ottla.log.errors import StorageError
from ottla.log.flush import Flush
from ottla.log.producer_state import Origin
from ottla.log.retention import apply_retention
from ottla.wire import uuid_text
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.control_records import KRaftVersionRecord

if TYPE_CHECKING:
    from ottla.core.metadata.image import MetadataImage

__all__ = ["RaftListener", "RaftLog", "RaftTransport"]

log = logging.getLogger(__name__)

RESIGN_SECONDS: Final = 2.0
LATE_MS: Final = 200
"""Whoever is so late for a deadline has stood still, and not waited."""
GRACE_MS: Final = 1000
"""How long the others have to be heard of then."""


class RaftListener(Protocol):
    """Who is told what becomes of the log."""

    def appended(self, batches: Sequence[bytes | memoryview]) -> None:
        """Batches were appended that this node has not decided itself: those of its leader, and control records."""

    def truncated(self, end_offset: int) -> None:
        """The log was cut: what was appended behind an offset will never be committed."""

    def replaced(self, image: MetadataImage) -> None:
        """A snapshot has replaced the log."""

    def committed(self, end_offset: int) -> None:
        """Everything below an offset is committed."""

    def leader_changed(self) -> None:
        """Another node leads, or none: what this one had appended as leader may be lost."""

    def failed(self, reason: str) -> None:
        """The log cannot be written."""


class RaftTransport(Protocol):
    """How requests reach other voters."""

    def send(self, to: Destination, request: Any, done: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Send a request; `done` gets the response, or None if there is none."""

    def found(self, node_id: int) -> None:
        """A node leads, so it is there, whatever became of earlier requests to it."""

    def close(self) -> None: ...


class RaftLog:
    """The metadata log of one node, and its part in the quorum."""

    def __init__(
        self,
        loaded: LoadedMetadata,
        voter: Voter,
        cluster_id: str,
        settings: QuorumSettings,
        *,
        bootstrap: Sequence[Destination],
        peers: RaftTransport,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        offload: Offload,
        random: Callable[[int], int],
    ) -> None:
        self.directory = loaded.directory
        self.partition = loaded.partition
        self.snapshots = loaded.snapshots
        self.bytes_since_snapshot = loaded.bytes_since_snapshot
        self.counts = RaftCounts(clock.monotonic_ms(), loaded.replay.last_timestamp_ms)
        self.counts.snapshots_loaded = int(loaded.snapshots.newest is not None)
        self.partition.flush(clock.wall_ms())  # the quorum counts what the log has as stored
        self._mark = SyncedMark(self.directory.disk, self.partition.directory.path, self.end_offset)
        self.quorum = Quorum(
            voter,
            loaded.replay.control,
            MetadataLog(loaded.partition, loaded.snapshots),
            stored=loaded.stored,
            cluster_id=cluster_id,
            random=random,
            settings=settings,
            bootstrap=bootstrap,
        )
        self._peers = peers
        self._clock = clock
        self._loop = loop
        self._offload = offload
        self._listener: RaftListener | None = None
        self._events: deque[Event] = deque()
        self._is_stepping = False
        self._is_over = False
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._timer: asyncio.Handle | None = None
        self._deadline_ms: int | None = None
        self._sync: Job | None = None
        self._is_sync_due = False
        self._strangers: set[tuple[str, int]] = set()
        """Addresses of nodes that belong to another cluster."""
        self._has_told_directory = False

    # --- what others ask of it ----------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        return self.partition.log_end_offset

    @property
    def is_leader(self) -> bool:
        return self.quorum.is_leader

    @property
    def leader(self) -> Destination | None:
        """Where the leader listens, if it is another node and known: on the listener that this node has, too."""
        listeners = () if self.is_leader else self.quorum.leader_listeners
        return self.quorum.destination(self.quorum.leader_id, listeners) if listeners else None

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    def start(self, listener: RaftListener) -> None:
        """Take part in the quorum. What becomes of the log is told to the listener from now on."""
        self._listener = listener
        if self.quorum.control.voters and not self.quorum.bootstrap:
            self.quorum.check_is_voter()
        self._step(Start())

    def append(self, batches: Sequence[bytes]) -> int:
        """Append batches of the leader; returns the new end. They are synced soon. StorageError if the disk fails."""
        if not self.quorum.is_leader:
            raise RuntimeError(f"node {self.quorum.node.voter_id} is not the leader of epoch {self.quorum.epoch}")
        try:
            for batch in batches:
                self._append(batch, Origin.RAFT_LEADER)
        except StorageError as error:
            self._not_written(error)
            raise
        self.sync_soon()
        self._step(Appended(self.end_offset))
        return self.end_offset

    def receive(self, request: object, api_version: int, listener: str, done: Callable[[Any], None]) -> None:
        """Take a request of another node; `done` gets the response or a Reject, perhaps later."""
        self._step(Received(request, done, api_version, listener))

    def upgrade(self, level: int, done: Callable[[Any], None], *, validate_only: bool) -> None:
        """Raise kraft.version; `done` gets None when that is committed, or a Reject."""
        self._step(UpgradeKRaftVersion(level, done, validate_only))

    def peer_gone(self, node_id: int) -> None:
        """The process of another node is dead."""
        self._step(PeerGone(node_id))

    def describe(self, request: Any, api_version: int) -> object:  # noqa: ANN401
        """The answer to DescribeQuorum."""
        return self.quorum.describe(request, api_version, self._clock.monotonic_ms(), self._clock.wall_ms())

    def drop_below(self, offset: int) -> None:
        """Raise the log start to an offset that a snapshot covers; delete segments below it."""
        self.partition.increment_log_start_offset(offset)
        apply_retention(self.partition, self._clock.wall_ms())

    async def resign(self) -> None:
        """Write nothing more in this epoch, and tell the other voters so; wait a moment until they know."""
        self._step(Stop())
        if not self._stopped.done():
            await asyncio.wait([self._stopped], timeout=RESIGN_SECONDS)

    def close(self) -> None:
        """Sync everything and end; `resign` comes before."""
        self.abandon()
        self.partition.close()
        self._mark.close()

    def abandon(self) -> None:
        """Take no part any more: nothing is sent and nothing is written."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._peers.close()

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        if self._deadline_ms is not None and self._clock.monotonic_ms() - self._deadline_ms > LATE_MS:
            self._deadline_ms = None
            self._events.append(StoodStill(GRACE_MS))
        self._events.append(event)
        if self._is_stepping or self._is_over:
            return
        self._is_stepping = True
        try:
            while self._events and not self._is_over:
                event = self._events.popleft()
                try:
                    actions = self.quorum.step(event, self._clock.monotonic_ms(), self._clock.wall_ms())
                except QuorumError as error:
                    self._not_taken(event, error)
                else:
                    self._do(actions)
                if self.quorum.state in (State.PROSPECTIVE, State.CANDIDATE):
                    self.counts.standing(self._clock.monotonic_ms())
        finally:
            self._is_stepping = False

    def _not_taken(self, event: Event, error: QuorumError) -> None:
        """The quorum is broken: an answer of a voter contradicts what is known."""
        if isinstance(event, Start):
            raise error
        self._fail(f"the quorum of the metadata log is broken: {error}")

    def _do(self, actions: Actions) -> None:
        listener = self._listener
        assert listener is not None
        try:
            for write in actions.writes:
                self._write(write)
        except (StorageError, OSError) as error:  # of the log, or of a snapshot that is downloaded
            self._not_written(error)
            return
        if actions.leader is not None:
            level = logging.INFO if len(self.quorum.control.voters) > 1 else logging.DEBUG
            log.log(level, "quorum leader=%d epoch=%d", actions.leader.leader_id, actions.leader.epoch)
            if actions.leader.leader_id != NOBODY:
                self.counts.elected(self._clock.monotonic_ms())
                self._peers.found(actions.leader.leader_id)
            listener.leader_changed()
        if actions.high_watermark is not None:
            self.partition.update_high_watermark(actions.high_watermark)
            self.counts.committed(actions.high_watermark, self._clock.monotonic_ms())
            self._tell_of_directory()
            listener.committed(actions.high_watermark)
        for message in actions.messages:
            self._deliver(message)
        self._wake_at(actions.deadline_ms)
        if self.quorum.has_stopped and not self._stopped.done():
            self._stopped.set_result(None)

    def _tell_of_directory(self) -> None:
        """Warn, once, if a voter has this node's id and another disk: this one follows, and has no vote."""
        quorum = self.quorum
        voter = quorum.control.voters.by_id(quorum.node.voter_id)
        if self._has_told_directory or quorum.is_voter or voter is None:
            return
        self._has_told_directory = True
        log.warning(
            "node %d is not a voter: the voter with this id has directory %s, but this disk is %s. If the disk was "
            "replaced, use ottla quorum remove-voter with the former directory, and then add-voter with the new one",
            quorum.node.voter_id,
            uuid_text(voter.directory_id),
            uuid_text(quorum.node.directory_id),
        )

    def _deliver(self, message: Send | Reply) -> None:
        if isinstance(message, Reply):
            response = message.response
            if isinstance(response, Reject) and response.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                log.error("a request was rejected: %s", response.message)
            message.token(response)
            return
        request_id = message.request_id

        def done(response: Any) -> None:  # noqa: ANN401
            if response is not None:
                self._check_cluster(message.to, response.error_code)
            self._step(NotAnswered(request_id) if response is None else Answered(request_id, response))

        self._peers.send(message.to, message.request, done)

    def _check_cluster(self, to: Destination, code: int) -> None:
        """Give up if every node that this one knows belongs to another cluster. One alone may itself be wrong."""
        address = (to.host, to.port)
        if code != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._strangers.discard(address)
            return
        if address not in self._strangers:
            self._strangers.add(address)
            log.error("%s:%d is not in the cluster of this node, %s", *address, self.quorum.cluster_id)
        others = {(each.host, each.port) for each in self.quorum.servers}
        if others <= self._strangers:
            self._fail(
                f"this node belongs to cluster {self.quorum.cluster_id}, but its controllers do not "
                f"({', '.join(f'{host}:{port}' for host, port in sorted(others))}); correct log.dirs or "
                f"controller.quorum.bootstrap.servers"
            )

    def _wake_at(self, deadline_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._deadline_ms = deadline_ms
        if deadline_ms is not None:
            pause_s = max(0, deadline_ms - self._clock.monotonic_ms()) / 1000
            self._timer = self._loop.call_later(pause_s, self._due)

    def _due(self) -> None:
        """A deadline has passed. What has come by the sockets meanwhile counts first: a stall is no silence."""
        self._timer = self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._step(Tick())

    # --- writes -------------------------------------------------------------------------------------------------------

    def _write(self, write: Write) -> None:
        listener = self._listener
        assert listener is not None
        if isinstance(write, StoreState):
            self._store(write.content)
        elif isinstance(write, AppendControl):
            self._append(write.batch, Origin.RAFT_LEADER)
            listener.appended((write.batch,))
            self.sync_soon()
        elif isinstance(write, AppendRecords):
            for batch in write.batches:
                self._append(batch, None)
            listener.appended(write.batches)
            self.sync_soon()
        elif isinstance(write, TruncateLog):
            self._finish_sync()
            self.partition.truncate_to(write.end_offset, self._clock.wall_ms())
            self._mark.reset(write.end_offset)
            self.counts.truncated(write.end_offset)
            listener.truncated(write.end_offset)
            self.sync_soon()
        elif isinstance(write, BeginSnapshot):
            self.snapshots.begin_download(SnapshotId(*write.snapshot_id))
        elif isinstance(write, AppendSnapshot):
            self.snapshots.append_download(write.data)
        elif isinstance(write, InstallSnapshot):
            self._install(write)

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
                self._fail(f"cannot write {path}: {error}")
                return
            self._step(StateStored())

        self._offload(work, then)

    def _append(self, batch: bytes | memoryview, origin: Origin | None) -> None:
        views = [view for view in split_batches(batch) if isinstance(view, BatchView)]
        # What this node wrote as leader may have waited for the disk until after its epoch.
        epoch = views[0].partition_leader_epoch if origin is Origin.RAFT_LEADER else self.quorum.epoch
        self.partition.append_as_follower(batch, epoch, self._clock.wall_ms(), origin=origin)
        self.bytes_since_snapshot += len(batch)
        for view in views:
            is_own = origin is Origin.RAFT_LEADER
            now_ms = self._clock.monotonic_ms()
            self.counts.append(view.next_offset, view.record_count, view.max_timestamp, now_ms, is_own=is_own)

    def _install(self, write: InstallSnapshot) -> None:
        """Let the downloaded snapshot take the place of the log. It is synced and read in a thread."""
        identity = SnapshotId(*write.snapshot_id)
        found: list[tuple[MetadataImage, tuple[Any, ...], int]] = []
        failures: list[Exception] = []

        def work() -> None:
            try:
                path = self.snapshots.finish_download()
                snapshot = read_snapshot(read_all(self.directory.disk, path))
                control = (KRaftVersionRecord(k_raft_version=snapshot.kraft_version), snapshot.voters)
                found.append((load_snapshot(snapshot, identity), control, snapshot.last_contained_log_timestamp))
            except Exception as error:  # noqa: BLE001 - told on the loop
                failures.append(error)

        def then() -> None:
            if failures:
                self._step(AppendFailed())
                self._fail(f"a metadata snapshot cannot be used: {failures[0]}")
                return
            ((image, control, timestamp_ms),) = found
            try:
                self.snapshots.take_download(identity)
                self.partition.truncate_fully(identity.end_offset, self._clock.wall_ms())
                self._mark.reset(identity.end_offset)
                self.snapshots.remove_below(identity.end_offset)
            except (StorageError, OSError) as error:
                self._not_written(error)
                return
            self.bytes_since_snapshot = 0
            self.counts.replaced(timestamp_ms)
            assert self._listener is not None
            self._listener.replaced(image)
            self._step(SnapshotInstalled(write.snapshot_id, control))

        self._finish_sync()
        self._offload(work, then)

    # --- syncs --------------------------------------------------------------------------------------------------------

    def sync_soon(self) -> None:
        """Sync what was written, in a thread."""
        self._is_sync_due = True
        if self._sync is None:
            self._begin_sync()

    def _begin_sync(self) -> None:
        self._is_sync_due = False
        try:
            flush = self.partition.prepare_flush()
        except StorageError as error:
            self._fail(f"the metadata log cannot be written: {error}")
            return
        self._sync = self._offload(flush.run, lambda: self._synced(flush))

    def _synced(self, flush: Flush) -> None:
        self._sync = None
        end_offset = flush.end_offset
        if not self.partition.finish_flush(flush, self._clock.wall_ms()):
            self._step(AppendFailed())
            self._fail(f"cannot sync the metadata log: {flush.error}")
            return
        self._mark.raise_to(end_offset)
        self._step(Synced(end_offset))
        if self._is_sync_due and self._sync is None:
            self._begin_sync()

    def _finish_sync(self) -> None:
        """Wait for the sync that runs: the log is about to be cut."""
        self._is_sync_due = False
        if self._sync is not None:
            self._sync.finish()

    def _not_written(self, error: StorageError | OSError) -> None:
        self._step(AppendFailed())
        self._fail(f"the metadata log cannot be written: {error}")

    def _fail(self, reason: str) -> None:
        if self._listener is not None:
            self._listener.failed(reason)
