"""Replays the snapshot and the log of the metadata partition into an image, and detects damage.

Apache Kafka truncates a damaged metadata log at the first bad batch and silently loses all later changes. A torn tail
is harmless: it was never acknowledged. Damage with sound batches behind it is not, unless it lies where nothing was
synced before a power cut (see `synced_mark`); so ottla refuses to start on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.core.metadata.fault import MetadataFault, UnsupportedMetadataError
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import read_batch
from ottla.core.metadata.snapshot import Snapshot, SnapshotId, load_snapshot
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ControlHistory, VoterSet
from ottla.log.cuts import sound_behind
from ottla.log.disk import Disk
from ottla.log.names import LOG_SUFFIX, parse_file_name
from ottla.wire.batch import BatchView, read_control_batch
from ottla.wire.keyed import Versioned
from ottla.wire.types.control_records import KRaftVersionRecord

__all__ = ["MetadataLogError", "MetadataReplay", "refuse_loss"]


class MetadataLogError(Exception):
    """The metadata log cannot be used; the text says why and what to do."""


class MetadataReplay:
    """The state from snapshot and log."""

    def __init__(self, configured: VoterSet | None = None) -> None:
        self.image = MetadataImage()
        self.control = ControlHistory(configured)
        self.faults: list[str] = []
        """Records that do not fit, which a log of others may have."""
        self.last_timestamp_ms = 0

    def take_snapshot(self, snapshot: Snapshot, identity: SnapshotId) -> None:
        self.image = load_snapshot(snapshot, identity)
        self.last_timestamp_ms = snapshot.last_contained_log_timestamp
        self._take_control(snapshot, identity.end_offset - 1)

    def take_bootstrap(self, snapshot: Snapshot) -> None:
        """The snapshot of formatting: the first voters."""
        self._take_control(snapshot, BOOTSTRAP_OFFSET)

    def _take_control(self, snapshot: Snapshot, offset: int) -> None:
        self.control.replay(KRaftVersionRecord(k_raft_version=snapshot.kraft_version), offset)
        self.control.replay(snapshot.voters, offset)

    def take_control(self, batch: BatchView) -> None:
        """Voters and kraft.version count as soon as they are in the log, committed or not."""
        self.last_timestamp_ms = max(self.last_timestamp_ms, batch.max_timestamp)
        if batch.is_control:
            for offset, control in enumerate(read_control_batch(batch), batch.base_offset):
                self.control.replay(control.message, offset)

    def take_batches(self, batches: Iterable[BatchView]) -> None:
        """Replay committed batches."""
        for batch in batches:
            self._take_batch(batch)

    def _take_batch(self, batch: BatchView) -> None:
        if batch.is_control:
            self.image.last_offset = batch.last_offset
            self.image.last_epoch = batch.partition_leader_epoch
            return
        for offset, record in enumerate(read_batch(batch), batch.base_offset):
            self._take_record(record, offset, batch.partition_leader_epoch)

    def _take_record(self, record: Versioned, offset: int, epoch: int) -> None:
        try:
            self.image.replay(record.message, offset, epoch)
        except UnsupportedMetadataError as error:
            raise MetadataLogError(f"the metadata log was written by later software: {error}") from None
        except MetadataFault as fault:
            self.faults.append(str(fault))


def refuse_loss(disk: Disk, synced_offset: int | None, path: str, position: int, offset: int, reason: str) -> None:
    """Raise MetadataLogError if to cut a segment would drop sound batches that were synced, as far as is known."""
    if synced_offset is not None and offset >= synced_offset:
        return
    folder, _, name = path.rpartition("/")
    base_offset = int(name.partition(".")[0])
    later = [
        entry.name
        for entry in disk.list_directory(folder)
        if (parsed := parse_file_name(entry.name)) is not None
        and parsed.kind == LOG_SUFFIX
        and not parsed.state
        and parsed.offset > base_offset
        and entry.size_bytes
    ]
    if later or sound_behind(disk, path, position + 1).is_worth_keeping:
        raise MetadataLogError(
            f"{path} is corrupt at byte {position} ({reason}), and valid changes follow, which starting would drop. "
            f"Restore the file, or truncate it at that byte to continue without them"
        )
