"""The metadata log and its snapshots on this node's disk, as the quorum reads them."""

from __future__ import annotations

from ottla.broker.controller.metadata_snapshots import SnapshotFiles
from ottla.core.metadata.snapshot import SnapshotId as SnapshotFileId
from ottla.core.quorum.events import EpochEnd, SnapshotId
from ottla.log.partition import Partition
from ottla.log.read import Isolation

__all__ = ["MetadataLog"]


class MetadataLog:
    """What `ottla.core.quorum.events.ReplicatedLog` asks for."""

    def __init__(self, partition: Partition, snapshots: SnapshotFiles) -> None:
        self._partition = partition
        self._snapshots = snapshots

    @property
    def start_offset(self) -> int:
        return self._partition.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log_end_offset

    @property
    def last_epoch(self) -> int:
        snapshot = self.latest_snapshot
        return max(self._partition.epochs.latest_epoch, 0 if snapshot is None else snapshot.epoch)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        newest = self._snapshots.newest
        return None if newest is None else SnapshotId(newest.end_offset, newest.epoch)

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        ids = self._snapshots.ids
        return SnapshotId(ids[0].end_offset, ids[0].epoch) if ids else None

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        epochs, end_offset = self._partition.epochs, self.end_offset
        if epoch >= epochs.latest_epoch >= 0:
            return EpochEnd(epochs.latest_epoch, end_offset)
        earliest, first = epochs.earliest(), self.earliest_snapshot
        if earliest is None or earliest[0] > epoch:  # before the log there is the snapshot
            return EpochEnd(0 if first is None else first.epoch, self.start_offset)
        return EpochEnd(*epochs.end_offset_for(epoch, end_offset))

    def read(self, offset: int, max_bytes: int) -> bytes:
        region = self._partition.read(offset, max_bytes, Isolation.LOG_END, min_one_batch=True)
        if region.file is None or not region.length:
            return b""
        return bytes(region.file.handle().read(region.length, region.position))

    def is_batch_boundary(self, offset: int) -> bool:
        return self._partition.read(offset, 1, Isolation.LOG_END, min_one_batch=True).base_offset == offset

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return self._snapshots.size_of(SnapshotFileId(*snapshot_id))

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self._snapshots.read_piece(SnapshotFileId(*snapshot_id), position, max_bytes)
