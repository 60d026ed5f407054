"""The periodic chores of logs. `housekeeping` has the periods; each chore only starts its work."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from ottla.broker.replicas.checkpoint_writer import CheckpointWriter
from ottla.log.checkpoint import format_offset_steps, format_offsets
from ottla.log.config import LONG_MAX
from ottla.log.directory import LogDirectory, RecoveryOffsets, remove_tree
from ottla.log.disk import Disk
from ottla.log.errors import LogError, StorageError
from ottla.log.names import CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, TopicPartition
from ottla.log.partition import Partition
from ottla.log.retention import apply_retention
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from ottla.broker.replicas.ports import LogChorePorts

__all__ = ["LogChores"]

log = logging.getLogger(__name__)

_PER_STEP = 200
"""Partitions that are looked at before others get a turn."""


class LogChores:
    """Chores over the partitions of one node, and what they remember from one time to the next."""

    def __init__(self, node: LogChorePorts) -> None:
        self._node = node
        self._writers = {
            directory: CheckpointWriter(directory, node.offload, node.replicas.directory_failed)
            for directory in node.storage.directories
        }
        self._leaving: list[tuple[int, str]] = []
        self._is_removing = False

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def write_recovery_points(self) -> None:
        self._node.cooperative_tasks.add_once("recovery points", self._recovery_points())

    def write_high_watermarks(self) -> None:
        self._node.cooperative_tasks.add_once("high watermarks", self._high_watermarks())

    def _recovery_points(self) -> Generator[None, None, None]:
        for directory in self._online():
            offsets = RecoveryOffsets()
            for partition in _paused(self._logs(directory)):
                if partition is None:
                    yield
                else:
                    offsets.add(partition)
            checkpoints = {}
            for name, noted in offsets.checkpoints.items():
                checkpoints[name] = yield from format_offset_steps(noted)
            self._writers[directory].write(checkpoints)

    def _high_watermarks(self) -> Generator[None, None, None]:
        for directory in self._online():
            offsets: dict[TopicPartition, int] = {}
            for partition in _paused(self._logs(directory)):
                if partition is None:
                    yield
                else:
                    offsets[partition.topic_partition] = partition.high_watermark
            content = yield from format_offset_steps(offsets)
            self._writers[directory].write({HIGH_WATERMARK_CHECKPOINT: content})

    def _logs(self, directory: LogDirectory) -> list[Partition]:
        """The logs of a directory, with those that are being moved to it."""
        return self._node.replicas.logs(directory) + self._node.log_dir_moves.logs(directory)

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._node.storage.directories if not directory.is_offline]

    # --- syncing ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sync closed segments, and logs whose `flush.ms` is over."""
        replicas = self._node.replicas
        for directory in self._online():
            for partition in list(directory.storage.rolled):
                replica = replicas.by_key.get(partition.topic_partition)
                if replica is not None and replica.has_log and replica.log is partition:
                    replicas.flush_soon(replica, partition)
        if self._node.settings.has_timed_flushes:
            now_ms = self._node.clock.wall_ms()
            for replica in replicas:
                if replica.has_log and replica.log.config.flush_ms < LONG_MAX and replica.log.needs_flush(now_ms):
                    replicas.flush_soon(replica, replica.log)
        replicas.begin_round()

    # --- retention and compaction -------------------------------------------------------------------------------------

    def apply_retention(self) -> None:
        self._node.cooperative_tasks.add_once("retention", self._retention())

    def _retention(self) -> Generator[None, None, None]:
        for replica in list(self._node.replicas):
            if replica.is_offline or not replica.has_log or replica.log.is_truncating:
                continue
            start_offset = replica.log.log_start_offset
            try:
                expired = apply_retention(replica.log, self._node.clock.wall_ms())
            except StorageError as error:
                self._node.replicas.directory_failed(replica.directory, error)
                continue
            if replica.log.log_start_offset != start_offset:
                self._node.replicas.look_again(replica)
            if expired.segment_count and expired.reason is not None:
                log.info(
                    "retention partition=%s segments=%d reason=%s start=%d",
                    replica.topic_partition,
                    expired.segment_count,
                    expired.reason.value.replace(" ", "-"),
                    replica.log.log_start_offset,
                )
            yield

    def compact(self) -> None:
        if self._node.settings["log.cleaner.enable"]:
            self._node.cooperative_tasks.add_once("compaction", self._compaction())

    def _compaction(self) -> Generator[None, None, None]:
        """Compact all partitions that need it: with one at a time, those that are dirty again soon would take every
        turn of the others."""
        from ottla.log.cleaner import due

        for directory in self._online():
            compacted = []
            for each in _paused(self._node.replicas.logs(directory)):
                if each is None:
                    yield
                elif each.config.is_compacted:
                    compacted.append(each)
            for partition, _ in due(compacted, directory.cleaner_offsets(), self._node.clock.wall_ms()):
                if self._can_compact(partition):
                    yield from self._compact(directory, partition)

    def _can_compact(self, partition: Partition) -> bool:
        """Whether a log is still that of a replica here, and is not being copied."""
        key = partition.topic_partition
        replica = self._node.replicas.by_key.get(key)
        is_here = replica is not None and not replica.is_offline and replica.has_log and replica.log is partition
        return is_here and key not in self._node.log_dir_moves.by_key

    def _compact(self, directory: LogDirectory, partition: Partition) -> Generator[None, None, None]:
        from ottla.log.cleaner import cleanable, compact

        key, now_ms = partition.topic_partition, self._node.clock.wall_ms()
        try:
            work = cleanable(partition, directory.cleaner_offsets().get(key), now_ms)
            result = yield from compact(partition, work, now_ms)
        except StorageError as error:
            self._node.replicas.directory_failed(directory, error)
            return
        except OSError as error:
            if self._can_compact(partition):  # otherwise its files may be gone
                failure = directory.storage.fail(error, f"compacting {key}")
                self._node.replicas.directory_failed(directory, failure)
            return
        except (LogError, WireError) as error:
            log.warning("compaction partition=%s failed: %s", key, error)
            return
        if result.first_dirty_offset is None or not self._can_compact(partition):
            return  # nothing is known of a log that came into its place meanwhile
        directory.cleaner_offsets()[key] = result.first_dirty_offset
        self._writers[directory].write({CLEANER_CHECKPOINT: format_offsets(directory.cleaner_offsets())})
        log.info(
            "compaction partition=%s records=%d kept=%d bytes=%d written=%d",
            key,
            result.records_read,
            result.records_kept,
            result.bytes_read,
            result.bytes_written,
        )

    # --- removal ------------------------------------------------------------------------------------------------------

    def remove_files(self) -> None:
        """Remove files and directories whose time has come, in a thread."""
        now_ms = self._node.clock.wall_ms()
        disk = self._node.disk
        files = [path for directory in self._online() for path in directory.storage.due_deletions(now_ms)]
        delay_ms = self._node.settings["log.segment.delete.delay.ms"]
        for directory in self._online():
            self._leaving += [(now_ms + delay_ms, path) for path in directory.take_leaving()]
        due = [path for at_ms, path in self._leaving if at_ms <= now_ms]
        self._leaving = [(at_ms, path) for at_ms, path in self._leaving if at_ms > now_ms]
        if files or due:
            self._node.offload(lambda: _remove(disk, files, due), lambda: None)

    def remove_leftovers(self) -> None:
        """Remove at once what the last run had marked for removal."""
        disk = self._node.disk
        due = [path for directory in self._online() for path in directory.take_leaving()]
        if due:
            self._node.offload(lambda: _remove(disk, [], due), lambda: None)

    # --- producers ----------------------------------------------------------------------------------------------------

    def expire_producers(self) -> None:
        self._node.cooperative_tasks.add_once("producers", self._expire_producers())

    def _expire_producers(self) -> Generator[None, None, None]:
        expiration_ms = self._node.settings["producer.id.expiration.ms"]
        for partition in _paused(self._node.replicas.logs()):
            if partition is None:
                yield
            else:
                partition.producers.remove_expired(self._node.clock.wall_ms(), expiration_ms)


def _paused(partitions: list[Partition]) -> Iterable[Partition | None]:
    """The partitions, with a None to pause at after each few."""
    for number, partition in enumerate(partitions, 1):
        yield partition
        if number % _PER_STEP == 0:
            yield None


def _remove(disk: Disk, files: list[str], trees: list[str]) -> None:
    for path in files:
        try:
            disk.unlink(path)
        except FileNotFoundError:
            continue  # its whole directory is gone
        except OSError as error:
            log.warning("%s cannot be removed: %s", path, error)
    for path in trees:
        try:
            remove_tree(disk, path)
        except OSError as error:
            log.warning("%s cannot be removed: %s", path, error)
