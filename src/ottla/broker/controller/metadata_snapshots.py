"""The snapshot files beside the metadata log: finds, reads, writes and deletes them.

A snapshot is written under another name, synced, made read-only and then renamed, so a file with the final name is
complete. Old snapshots are deleted with the part of the log below the next one; one always stays.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from typing import Final

from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.snapshot import (
    BOOTSTRAP_ID,
    Snapshot,
    SnapshotId,
    read_snapshot,
    read_snapshot_header,
    snapshot_id,
    snapshot_records,
    write_snapshot,
)
from ottla.log.disk import Disk, File, read_all
from ottla.wire.batch import LOG_OVERHEAD_BYTES
from ottla.wire.types.control_records import VotersRecord

__all__ = ["SnapshotFiles"]

log = logging.getLogger(__name__)

_BATCH_LENGTH_POSITION: Final = 8
_DRAFT_SUFFIX: Final = ".checkpoint.part"
_DELETED_SUFFIX: Final = ".checkpoint.deleted"


class _Download:
    """A snapshot that is being copied from the leader."""

    def __init__(self, path: str, file: File) -> None:
        self.path = path
        self.file = file
        self.size_bytes = 0


class SnapshotFiles:
    """The snapshots in a metadata partition's directory."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._sizes: dict[SnapshotId, int] = {}
        self._download: _Download | None = None
        self._find()

    def _find(self) -> None:
        for entry in self._disk.list_directory(self._path):
            identity = SnapshotId.of_file(entry.name)
            if identity is not None:
                self._sizes[identity] = entry.size_bytes

    def remove_unfinished(self) -> None:
        """Remove snapshots that were being written or deleted when the node last ended."""
        for entry in self._disk.list_directory(self._path):
            if entry.name.endswith((_DRAFT_SUFFIX, _DELETED_SUFFIX)):
                self._disk.unlink(f"{self._path}/{entry.name}")

    @property
    def ids(self) -> list[SnapshotId]:
        """The ids of all snapshots, oldest first, without the bootstrap snapshot."""
        return sorted(identity for identity in self._sizes if identity != BOOTSTRAP_ID)

    @property
    def newest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    @property
    def size_bytes(self) -> int:
        return sum(self._sizes.values())

    def read(self, identity: SnapshotId) -> Snapshot:
        """The content of a snapshot. MetadataFault or WireError if it is damaged."""
        return read_snapshot(read_all(self._disk, self._file(identity)))

    def bootstrap(self) -> Snapshot | None:
        """The snapshot that formatting made, with the first voters."""
        return self.read(BOOTSTRAP_ID) if BOOTSTRAP_ID in self._sizes else None

    def write_steps(
        self,
        image: MetadataImage,
        *,
        now_ms: int,
        last_timestamp_ms: int,
        kraft_version: int,
        voters: VotersRecord | None,
    ) -> Generator[None, None, SnapshotId]:
        """Write a snapshot of `image`, which must not change meanwhile, a batch a step."""
        identity = snapshot_id(image)
        draft = f"{self._path}/{identity.file_name.removesuffix('.checkpoint')}-{now_ms:x}{_DRAFT_SUFFIX}"
        batches = write_snapshot(
            snapshot_records(image),
            epoch=identity.epoch,
            timestamp_ms=now_ms,
            last_contained_log_timestamp=last_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
        size = yield from self._write_draft(draft, batches)
        self._disk.make_read_only(draft)
        self._disk.rename(draft, self._file(identity))
        self._disk.sync_directory(self._path)
        self._sizes[identity] = size
        return identity

    def _write_draft(self, draft: str, batches: Iterator[bytes]) -> Generator[None, None, int]:
        file = self._disk.open(draft, create=True)
        size = 0
        try:
            for batch in batches:
                file.write([batch], size)
                size += len(batch)
                yield
            file.sync()
        finally:
            file.close()
        return size

    def remove_below(self, end_offset: int) -> None:
        """Remove snapshots that end below an offset."""
        for identity in [each for each in self._sizes if each.end_offset < end_offset]:
            self._disk.unlink(self._file(identity))
            del self._sizes[identity]

    def size_of(self, identity: SnapshotId) -> int | None:
        """The bytes of a snapshot; None if there is no such snapshot."""
        return self._sizes.get(identity)

    def read_piece(self, identity: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Some bytes of a snapshot's file."""
        file = self._disk.open(self._file(identity))
        try:
            return bytes(file.read(min(max_bytes, self._sizes[identity] - position), position))
        finally:
            file.close()

    # --- a snapshot that comes from the leader ------------------------------------------------------------------------

    def begin_download(self, identity: SnapshotId) -> None:
        """Open an empty file for a snapshot of the leader; one that was begun before is thrown away."""
        self.abandon_download()
        path = f"{self._path}/{identity.file_name.removesuffix('.checkpoint')}-download{_DRAFT_SUFFIX}"
        if self._disk.exists(path):
            self._disk.unlink(path)
        self._download = _Download(path, self._disk.open(path, create=True))

    def append_download(self, data: bytes | memoryview) -> None:
        assert self._download is not None
        self._download.file.write([data], self._download.size_bytes)
        self._download.size_bytes += len(data)

    def finish_download(self) -> str:
        """Sync the file and close it; returns its path. To be called in a thread."""
        assert self._download is not None
        self._download.file.sync()
        self._download.file.close()
        return self._download.path

    def take_download(self, identity: SnapshotId) -> None:
        """Give the snapshot that was downloaded its name."""
        download, self._download = self._download, None
        assert download is not None
        self._disk.make_read_only(download.path)
        self._disk.rename(download.path, self._file(identity))
        self._disk.sync_directory(self._path)
        self._sizes[identity] = download.size_bytes

    def abandon_download(self) -> None:
        download, self._download = self._download, None
        if download is not None:
            download.file.close()
            self._disk.unlink(download.path)

    def timestamp_ms(self, identity: SnapshotId) -> int:
        """The time of the last record in a snapshot. Only its first batch is read: the event loop waits for it."""
        first = LOG_OVERHEAD_BYTES + int.from_bytes(self.read_piece(identity, _BATCH_LENGTH_POSITION, 4), "big")
        return read_snapshot_header(self.read_piece(identity, 0, first)).last_contained_log_timestamp

    def _file(self, identity: SnapshotId) -> str:
        return f"{self._path}/{identity.file_name}"
