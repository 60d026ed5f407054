"""Reads the metadata of a formatted directory: the newest snapshot, and the log behind it.

Nothing is written but the partition's own directory, and what a crash has left undone of a snapshot that was to replace
the log. Of a sole voter all that its log holds is committed as soon as it leads, so the image is the one at the log's
end. Others must be told by their leader how much is committed: the image is that of the snapshot, and the batches
behind it wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Final

from ottla.broker.controller.metadata_replay import MetadataLogError, MetadataReplay, refuse_loss
from ottla.broker.controller.metadata_snapshots import SnapshotFiles
from ottla.broker.controller.synced_mark import read_mark
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.snapshot import SnapshotId
from ottla.core.metadata.uuids import METADATA_TOPIC_ID
from ottla.core.quorum.stored import FILE_NAME as QUORUM_STATE
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.core.quorum.voters import VoterSet
from ottla.log.config import LogConfig
from ottla.log.directory import METADATA_PARTITION, LogDirectory
from ottla.log.disk import Disk, read_all
from ottla.log.names import PARTITION_METADATA_FILE
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import Isolation
from ottla.log.recovery import RecoveryReport, load
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.fault import WireError

__all__ = ["LoadedMetadata", "MetadataLogError", "load_metadata", "read_quorum_state"]

log = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 20


class LoadedMetadata:
    """The metadata from snapshot and log, before the node leads."""

    def __init__(
        self, directory: LogDirectory, config: LogConfig, configured: VoterSet | None, node_id: int, now_ms: int
    ) -> None:
        self.directory = directory
        self._make_directory()
        self.snapshots = SnapshotFiles(directory.disk, self._path)
        self.snapshots.remove_unfinished()
        self.partition, self.report = self._load_log(config, now_ms)
        self.replay = MetadataReplay(configured)
        self._read_snapshot()
        self.snapshots.remove_below(self.partition.segments[0].base_offset)
        start = max(self.replay.image.last_offset + 1, self.partition.segments[0].base_offset)
        batches = list(self._batches(start))
        self.bytes_since_snapshot = sum(batch.size_bytes for batch in batches)
        for batch in batches:
            self.replay.take_control(batch)
        self.uncommitted: list[BatchView] = []
        """Batches that may be committed or not."""
        if self.replay.control.voters.ids == (node_id,):
            self.replay.take_batches(batches)
        else:
            self.uncommitted = batches
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

    def _make_directory(self) -> None:
        if not self.directory.disk.exists(f"{self._path}/{PARTITION_METADATA_FILE}"):
            create_partition_directory(self.directory.disk, self._path, METADATA_TOPIC_ID)
            self.directory.found[METADATA_PARTITION] = str(METADATA_PARTITION)

    def _load_log(self, config: LogConfig, now_ms: int) -> tuple[Partition, RecoveryReport]:
        disk = self.directory.disk
        request = self.directory.request_for(METADATA_PARTITION, config)
        request = request._replace(before_cut=partial(refuse_loss, disk, read_mark(disk, self._path)))
        newest = self.snapshots.newest
        partition, report = load(self.directory.storage, request, now_ms)
        if newest is not None and _has_replaced(newest, partition):
            partition.truncate_fully(newest.end_offset, now_ms)
        return partition, report

    def _read_snapshot(self) -> None:
        start = self.partition.segments[0].base_offset
        newest = self.snapshots.newest
        if start > 0 and (newest is None or newest.end_offset < start):
            raise MetadataLogError(
                f"{self._path} starts at offset {start}, and no snapshot covers what came before; restore the snapshot"
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


def _has_replaced(snapshot: SnapshotId, log: Partition) -> bool:
    """Whether a snapshot of the leader was to take the place of a log that a crash has left as it was.

    Such a log ends below the snapshot, or it has only records of earlier epochs: its end was never committed, and the
    leader, which is told of the snapshot's epoch, would not notice it.
    """
    return snapshot.end_offset > log.log_end_offset or snapshot.epoch > log.epochs.latest_epoch


def load_metadata(
    directory: LogDirectory, config: LogConfig, configured: VoterSet | None, node_id: int, now_ms: int
) -> LoadedMetadata:
    """Read the metadata of a formatted directory. Raises MetadataLogError if it cannot be used."""
    try:
        return LoadedMetadata(directory, config, configured, node_id, now_ms)
    except (MetadataFault, WireError) as error:
        raise MetadataLogError(f"{directory.path}/{METADATA_PARTITION}: {error}") from error


def read_quorum_state(disk: Disk, path: str) -> StoredState | None:
    """quorum-state in a metadata partition's directory; None if there is none yet."""
    path = f"{path}/{QUORUM_STATE}"
    content = read_all(disk, path) if disk.exists(path) else b""
    return read_stored(content) if content else None
