"""The metadata log of this node: the only way to change the cluster's metadata.

`submit` passes a request to the controller. The records of the result are appended as one batch and replayed into the
image at once, since the next request must see them. The reply leaves when the records are committed, which for a quorum
of one means synced. Syncs run in a thread, one at a time; what is appended meanwhile goes with the next sync.

At the start, before the node serves, the same happens without threads: `load_metadata` reads snapshot and log, `lead`
raises the epoch (quorum-state first) and writes the first records of a new leader and controller, `sync` syncs them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from ottla.broker.controller.metadata_replay import MetadataLogError, MetadataReplay, refuse_loss
from ottla.broker.controller.metadata_snapshots import SnapshotFiles
from ottla.broker.loop.clock import Clock
from ottla.broker.loop.offload import Job, Offload
from ottla.core.metadata.context import Context, Result
from ottla.core.metadata.controller import Controller, refuse
from ottla.core.metadata.fault import MetadataFault, Reject
from ottla.core.metadata.image import Changes, MetadataImage
from ottla.core.metadata.records import build_batches
from ottla.core.metadata.uuids import METADATA_TOPIC_ID
from ottla.core.quorum.quorum import (
    AppendControl,
    Appended,
    AppendFailed,
    Event,
    Quorum,
    Start,
    StateStored,
    Stop,
    StoreState,
)
from ottla.core.quorum.stored import FILE_NAME as QUORUM_STATE
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.core.quorum.voters import Voter, VoterSet
from ottla.log.config import LogConfig
from ottla.log.directory import METADATA_PARTITION, LogDirectory
from ottla.log.disk import Disk, read_all, replace_file
from ottla.log.errors import StorageError
from ottla.log.flush import Flush
from ottla.log.names import PARTITION_METADATA_FILE
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.producer_state import Origin
from ottla.log.read import Isolation
from ottla.log.recovery import RecoveryReport, load
from ottla.log.retention import apply_retention
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.fault import WireError
from ottla.wire.keyed import Versioned

__all__ = ["LoadedMetadata", "MetadataLog", "MetadataLogError", "load_metadata", "read_quorum_state"]

log = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 20


class LoadedMetadata:
    """The metadata from snapshot and log, before the node leads."""

    def __init__(self, directory: LogDirectory, config: LogConfig, configured: VoterSet | None, now_ms: int) -> None:
        self.directory = directory
        self._make_directory()
        self.snapshots = SnapshotFiles(directory.disk, self._path)
        self.snapshots.remove_unfinished()
        self.partition, self.report = self._load_log(config, now_ms)
        self.replay = MetadataReplay(configured)
        self._read_snapshot()
        start = max(self.replay.image.last_offset + 1, self.partition.segments[0].base_offset)
        self.replay.take_batches(self._batches(start))
        self.image.take_changes()

    @property
    def image(self) -> MetadataImage:
        return self.replay.image

    @property
    def _path(self) -> str:
        return f"{self.directory.path}/{METADATA_PARTITION}"

    @property
    def stored(self) -> StoredState | None:
        return read_quorum_state(self.directory.disk, self._path)

    @property
    def log_epoch(self) -> int:
        """The epoch of the last record, in the log or in the snapshot."""
        return max(self.partition.epochs.latest_epoch, self.image.last_epoch, 0)

    def _make_directory(self) -> None:
        if not self.directory.disk.exists(f"{self._path}/{PARTITION_METADATA_FILE}"):
            create_partition_directory(self.directory.disk, self._path, METADATA_TOPIC_ID)
            self.directory.found[METADATA_PARTITION] = str(METADATA_PARTITION)

    def _load_log(self, config: LogConfig, now_ms: int) -> tuple[Partition, RecoveryReport]:
        disk = self.directory.disk
        request = self.directory.request_for(METADATA_PARTITION, config)
        request = request._replace(before_cut=lambda *damage: refuse_loss(disk, *damage))
        newest = self.snapshots.newest
        partition, report = load(self.directory.storage, request, now_ms)
        if newest is not None and newest.end_offset > partition.log_end_offset:
            partition.truncate_fully(newest.end_offset, now_ms)
        return partition, report

    def _read_snapshot(self) -> None:
        start = self.partition.segments[0].base_offset
        newest = self.snapshots.newest
        if start > 0 and (newest is None or newest.end_offset < start):
            raise MetadataLogError(
                f"{self._path} begins at offset {start}, and no snapshot holds what came before; restore the snapshot"
            )
        if newest is not None:
            self.replay.take_snapshot(self.snapshots.read(newest), newest)
            return
        first = self.snapshots.bootstrap()
        if first is not None:
            self.replay.take_bootstrap(first)

    def _batches(self, offset: int) -> Iterator[BatchView]:
        """All batches from an offset on."""
        while offset < self.partition.log_end_offset:
            region = self.partition.read(offset, _READ_BYTES, Isolation.LOG_END, min_one_batch=True)
            if region.file is None or not region.length:
                return
            data = region.file.handle().read(region.length, region.position)
            for batch in split_batches(data):
                if not isinstance(batch, BatchView):
                    raise MetadataLogError(f"{self._path} has a batch of an old format at offset {batch.base_offset}")
                if batch.last_offset >= offset:
                    yield batch
                    offset = batch.last_offset + 1


def load_metadata(
    directory: LogDirectory, config: LogConfig, configured: VoterSet | None, now_ms: int
) -> LoadedMetadata:
    """Read the metadata of a formatted directory. Raises MetadataLogError if it cannot be used."""
    try:
        return LoadedMetadata(directory, config, configured, now_ms)
    except (MetadataFault, WireError) as error:
        raise MetadataLogError(f"{directory.path}/{METADATA_PARTITION}: {error}") from error


def read_quorum_state(disk: Disk, path: str) -> StoredState | None:
    """quorum-state in a metadata partition's directory; None if there is none yet."""
    path = f"{path}/{QUORUM_STATE}"
    content = read_all(disk, path) if disk.exists(path) else b""
    return read_stored(content) if content else None


class _Pending:
    """A reply that waits until the log is committed up to `end_offset`."""

    __slots__ = ("done", "end_offset", "reply")

    def __init__(self, end_offset: int, reply: object, done: Callable[[Any], None]) -> None:
        self.end_offset = end_offset
        self.reply = reply
        self.done = done


class MetadataLog:
    """The metadata log, as its leader writes it."""

    def __init__(
        self,
        loaded: LoadedMetadata,
        voter: Voter,
        controller: Controller,
        clock: Clock,
        *,
        new_uuid: Callable[[], bytes],
        applied: Callable[[Changes], None],
        failed: Callable[[str], None],
        offload: Offload,
    ) -> None:
        self.directory = loaded.directory
        self.partition = loaded.partition
        self.image = loaded.image
        self.snapshots = loaded.snapshots
        self.last_timestamp_ms = loaded.replay.last_timestamp_ms
        self.controller = controller
        self.quorum = Quorum(
            voter,
            loaded.replay.control,
            stored=loaded.stored,
            log_end_offset=loaded.partition.log_end_offset,
            log_epoch=loaded.log_epoch,
        )
        self.bytes_since_snapshot = 0
        self._clock = clock
        self._new_uuid = new_uuid
        self._applied = applied
        self._failed = failed
        self._offload = offload
        self._pending: deque[_Pending] = deque()
        self._job: Job | None = None

    # --- starting -----------------------------------------------------------------------------------------------------

    def lead(self, bootstrap_records: list[Versioned], *, own_broker_id: int) -> None:
        """Become leader of the quorum and active controller; only quorum-state is synced."""
        self._step(Start())
        activation = self.controller.activate(
            bootstrap_records, self._clock.monotonic_ms(), own_broker_id=own_broker_id
        )
        self.append(activation)

    def _step(self, event: Event) -> None:
        actions = self.quorum.step(event, self._clock.wall_ms())
        for write in actions.writes:
            if isinstance(write, StoreState):
                path = f"{self.partition.directory.path}/{QUORUM_STATE}"
                replace_file(self.directory.disk, path, write.content)
                self._step(StateStored())
            elif isinstance(write, AppendControl):
                self._append_batch(write.batch)
                self.image.last_offset = self.partition.log_end_offset - 1
                self.image.last_epoch = self.quorum.epoch
                self.quorum.log_end_offset = self.partition.log_end_offset
        if actions.high_watermark is not None:
            self.partition.update_high_watermark(actions.high_watermark)

    def handle_now(self, request: object, api_version: int) -> Any:  # noqa: ANN401
        """Handle a request of the node itself without waiting for the disk; returns the reply."""
        result = self.controller.handle(request, self._context(api_version))
        self.append(result)
        return result.reply

    def sync(self) -> None:
        """Sync all that was appended, and wait for it."""
        while self._job is not None:
            self._job.finish()
        flush = self.partition.prepare_flush()
        flush.run()
        self._finish(flush)

    # --- appending ----------------------------------------------------------------------------------------------------

    def _context(self, api_version: int, **more: Any) -> Context:  # noqa: ANN401
        return Context(
            now_ms=self._clock.monotonic_ms(),
            log_end_offset=self.partition.log_end_offset,
            new_uuid=self._new_uuid,
            api_version=api_version,
            kraft_version=self.quorum.control.kraft_version,
            **more,
        )

    def append(self, result: Result) -> int:
        """Append and replay the records of a result; returns the new end offset. Reject if they are too many."""
        if not result.records:
            return self.partition.log_end_offset
        base_offset, epoch = self.partition.log_end_offset, self.quorum.epoch
        batches = build_batches(result, base_offset=base_offset, epoch=epoch, timestamp_ms=self._clock.wall_ms())
        for batch in batches:
            self._append_batch(batch)
        self.image.replay_all(result.records, base_offset, epoch)
        self._applied(self.image.take_changes())
        return self.partition.log_end_offset

    def _append_batch(self, batch: bytes) -> None:
        now_ms = self._clock.wall_ms()
        try:
            self.partition.append_as_follower(batch, self.quorum.epoch, now_ms, origin=Origin.RAFT_LEADER)
        except StorageError as error:
            self.quorum.step(AppendFailed(), now_ms)
            self._failed(f"the metadata log cannot be written: {error}")
            raise
        self.bytes_since_snapshot += len(batch)
        self.last_timestamp_ms = now_ms

    def submit(
        self,
        request: object,
        api_version: int,
        done: Callable[[Any], None],
        **context: Any,  # noqa: ANN401
    ) -> None:
        """Handle a request; `done` gets the reply when its records are committed.

        `context` may have `authorize` and `charge`, as in `ottla.core.metadata.context`.
        """
        result = self.controller.handle(request, self._context(api_version, **context))
        try:
            end_offset = self.append(result)
        except Reject as reject:
            done(refuse(request, reject))
            return
        if self.quorum.high_watermark >= end_offset and not self._pending:
            done(result.reply)
            return
        self._pending.append(_Pending(end_offset, result.reply, done))
        self._begin_sync()

    def sync_soon(self) -> None:
        """Sync what was appended, in a thread."""
        if self.quorum.high_watermark < self.partition.log_end_offset:
            self._begin_sync()

    def _begin_sync(self) -> None:
        if self._job is not None:
            return
        try:
            flush = self.partition.prepare_flush()
        except StorageError as error:
            self._failed(f"the metadata log cannot be written: {error}")
            return
        self._job = self._offload(flush.run, lambda: self._end_sync(flush))

    def _end_sync(self, flush: Flush) -> None:
        self._job = None
        if not self._finish(flush):
            return
        while self._pending and self._pending[0].end_offset <= self.quorum.high_watermark:
            pending = self._pending.popleft()
            pending.done(pending.reply)
        if self._pending:
            self._begin_sync()

    def _finish(self, flush: Flush) -> bool:
        end_offset = flush.end_offset
        if not self.partition.finish_flush(flush, self._clock.wall_ms()):
            self._step(AppendFailed())
            self._failed(f"the metadata log cannot be synced: {flush.error}")
            return False
        self._step(Appended(end_offset))
        return True

    def drop_below(self, offset: int) -> None:
        """Raise the log start to an offset that a snapshot covers; delete segments below it."""
        self.partition.increment_log_start_offset(offset)
        apply_retention(self.partition, self._clock.wall_ms())

    # --- stopping -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Sync everything; write nothing more in this epoch."""
        self._step(Stop())
        self.partition.close()
