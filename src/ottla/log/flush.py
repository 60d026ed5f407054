"""Flushes: syncs what was written, without making the event loop wait for the disk.

A flush has three parts. `Partition.prepare_flush` writes what is still in memory and notes what has to be synced;
`Flush.run` does that, touches nothing else, and so may run in a thread; `Partition.finish_flush` moves the recovery
point, up to which nothing can be lost any more, or takes the directory offline. A sync that failed is never tried
again: the kernel may have dropped the pages, and a second call would lie.

`GroupCommit` is for nodes that acknowledge nothing before it is on the disk (`--fsync`). While one round of syncs is
under way, appends gather for the next one; each round costs one sync for each partition that was written.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ottla.log.disk import File, replace_file
from ottla.log.errors import StorageError
from ottla.log.files import LogFile
from ottla.log.names import LEADER_EPOCH_FILE

if TYPE_CHECKING:
    from ottla.log.partition import Partition

__all__ = ["Flush", "GroupCommit"]


class Flush:
    """What must be synced before the recovery point of a partition may become `end_offset`."""

    __slots__ = ("_active", "_active_handle", "_paths", "_sync_directory", "end_offset", "epochs", "error", "partition")

    def __init__(
        self,
        partition: Partition,
        end_offset: int,
        active: LogFile,
        paths: list[str],
        epochs: bytes | None,
        *,
        sync_directory: bool,
    ) -> None:
        self.partition = partition
        self.end_offset = end_offset
        self.epochs = epochs
        self.error: OSError | None = None
        self._active = active
        self._active_handle: File = active.pin()
        self._paths = paths
        self._sync_directory = sync_directory

    def run(self) -> None:
        """Sync it all; a failure is kept in `error`. Safe in a thread: everything was decided before."""
        directory = self._active.directory
        disk = directory.storage.disk
        try:
            for path in self._paths:
                _sync_if_there(self.partition, path)
            self._active_handle.sync()
            if self.epochs is not None:
                replace_file(disk, directory.file(LEADER_EPOCH_FILE), self.epochs)
            elif self._sync_directory:
                disk.sync_directory(directory.path)
        except OSError as error:
            self.error = error

    def release(self) -> None:
        self._active.unpin()


def _sync_if_there(partition: Partition, path: str) -> None:
    try:
        file = partition.directory.storage.disk.open(path)
    except FileNotFoundError:
        return  # retention or compaction was faster
    try:
        file.sync()
    finally:
        file.close()


class GroupCommit:
    """Rounds of flushes over the partitions that were written. The loop calls all of it but `Flush.run`."""

    __slots__ = ("_under_way", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Partition, None] = {}
        self._under_way: list[Flush] = []

    def add(self, partition: Partition) -> None:
        """Let the next round include a partition that was written."""
        self._waiting[partition] = None

    def remove(self, partition: Partition) -> None:
        """Leave a partition out of the next round: it is about to go."""
        self._waiting.pop(partition, None)

    @property
    def is_under_way(self) -> bool:
        return bool(self._under_way)

    def begin(self) -> list[Flush]:
        """The next round, to be run anywhere; empty if nothing waits or a round is under way."""
        if self._under_way:
            return []
        waiting, self._waiting = self._waiting, {}
        for partition in waiting:
            with contextlib.suppress(StorageError):  # its directory is offline, which `storage.failure` tells
                self._under_way.append(partition.prepare_flush())
        return self._under_way

    def finish(self) -> list[Partition]:
        """End the round, after all its flushes were run.

        Gives the partitions whose recovery point has moved: everything below it may be acknowledged. Those missing
        are on a disk that failed.
        """
        done, self._under_way = self._under_way, []
        return [flush.partition for flush in done if flush.partition.finish_flush(flush)]
