"""One log directory: its meta.properties, its partitions, and its checkpoints.

Life of a directory:

1. `LogDirectory.open` reads what it is: identity, whether the last stop was clean, the checkpoints, the partitions. The
   caller has taken the lock before.
2. `begin` removes the clean-shutdown marker: from here on a crash is a crash.
3. Partitions are loaded, `request_for` says with what; unknown ones are put aside as strays.
4. While it runs, `write_checkpoints` notes recovery points, log starts, high watermarks and the cleaner's progress.
   `remove_partition` renames a directory; its files are removed later.
5. `end` writes the marker, last of all, after everything was flushed and closed.

After an I/O error the directory is offline (`storage.failure`): nothing is written any more, least of all the marker.
The others go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.log.checkpoint import CheckpointError, format_offsets, parse_offsets, parse_partition_metadata
from ottla.log.config import LogConfig
from ottla.log.disk import Disk, read_all, replace_file
from ottla.log.files import LogStorage
from ottla.log.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_SUFFIX,
    TopicPartition,
    marked_directory_name,
    parse_directory_name,
)
from ottla.log.partition import Partition
from ottla.log.recovery import LoadRequest
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties, MetaPropertiesError, read_meta_properties

__all__ = [
    "METADATA_PARTITION",
    "LogDirectory",
    "RecoveryOffsets",
    "directory_problems",
]

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)

NO_BROKER_EPOCH: Final = -1


class LogDirectory:
    """One of the `log.dirs`."""

    def __init__(self, storage: LogStorage, path: str, properties: MetaProperties) -> None:
        self.storage = storage
        self.path = path
        self.properties = properties
        self.is_clean = False
        self.previous_broker_epoch = NO_BROKER_EPOCH
        """The broker's epoch when it last stopped cleanly, for its next registration."""
        self.found: dict[TopicPartition, str] = {}
        """Partition -> the name of its directory."""
        self.futures: dict[TopicPartition, str] = {}
        """Partition -> the name of the directory in which it is on its way to here from another log directory."""
        self.notes: list[str] = []
        """What was odd, for the log."""
        self._leaving: list[str] = []
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}

    @classmethod
    def open(cls, storage: LogStorage, path: str) -> LogDirectory:
        """Read what a formatted directory holds; MetaPropertiesError or OSError if it is none."""
        disk = storage.disk
        properties = read_meta_properties(read_all(disk, f"{path}/{META_PROPERTIES_FILE}"))
        directory = cls(storage, path, properties)
        directory._read_marker()
        for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, CLEANER_CHECKPOINT):
            directory._checkpoints[name] = directory._read_checkpoint(name)
        directory._find_partitions()
        return directory

    @property
    def disk(self) -> Disk:
        return self.storage.disk

    @property
    def is_offline(self) -> bool:
        return self.storage.failure is not None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_marker(self) -> None:
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        if not self.disk.exists(path):
            return
        self.is_clean = True
        try:
            content = json.loads(read_all(self.disk, path) or b"{}")
            self.previous_broker_epoch = int(content.get("brokerEpoch", NO_BROKER_EPOCH))
        except (ValueError, AttributeError, TypeError):
            self.notes.append(f"{path} is not JSON; the shutdown counts as clean, without a broker epoch")

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        path = f"{self.path}/{name}"
        if not self.disk.exists(path):
            return {}
        try:
            return parse_offsets(read_all(self.disk, path))
        except CheckpointError as error:
            # Without it more is read than needed, or records deleted by request come back; refusing to start is worse.
            self.notes.append(f"{path} is ignored: {error}")
            return {}

    def _find_partitions(self) -> None:
        for entry in self.disk.list_directory(self.path):
            if not entry.is_directory:
                continue
            parsed = parse_directory_name(entry.name)
            if parsed is None:
                self.notes.append(
                    f"{self.path}/{entry.name} is not a partition directory; Apache Kafka would refuse to start with it"
                )
            elif parsed[1] == DELETE_SUFFIX:
                self._leaving.append(entry.name)
            elif parsed[1] == "":
                self.found[parsed[0]] = entry.name
            elif parsed[1] == FUTURE_SUFFIX:
                self.futures[parsed[0]] = entry.name

    def offset(self, checkpoint: str, partition: TopicPartition) -> int | None:
        return self._checkpoints.get(checkpoint, {}).get(partition)

    def cleaner_offsets(self) -> dict[TopicPartition, int]:
        """How far compaction had come, to be kept up to date and written with the other checkpoints."""
        return self._checkpoints.setdefault(CLEANER_CHECKPOINT, {})

    def lower_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """A log ends here now: what will stand behind its end is not compacted."""
        offsets = self.cleaner_offsets()
        if offsets.get(partition, 0) > offset:
            offsets[partition] = offset

    def request_for(self, partition: TopicPartition, config: LogConfig) -> LoadRequest:
        """How to load a partition that was found here, or one that is on its way to here."""
        name = self.found.get(partition) or self.futures[partition]
        return LoadRequest(
            path=f"{self.path}/{name}",
            topic_partition=partition,
            config=config,
            # The metadata log is read through at every start: a voter must not forget or invent anything.
            is_clean=self.is_clean and partition != METADATA_PARTITION,
            log_start_offset=self.offset(LOG_START_CHECKPOINT, partition) or 0,
            recovery_point=self.offset(RECOVERY_POINT_CHECKPOINT, partition) or 0,
        )

    # --- beginning and ending -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """From now on the directory is in use: a crash must not look like a clean stop."""
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        try:
            if self.disk.exists(path):
                self.disk.unlink(path)
                self.disk.sync_directory(self.path)
        except OSError as error:
            raise self.storage.fail(error, f"removing {path}") from error

    def end(self, broker_epoch: int) -> None:
        """Note a clean stop. All partitions have been closed, and the checkpoints written."""
        self.storage.check()
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        self._replace(CLEAN_SHUTDOWN_FILE, content)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def write_checkpoints(self, partitions: Iterable[Partition]) -> None:
        """Note recovery points and log starts of the partitions that live here. Call it after flushes, not before."""
        offsets = RecoveryOffsets()
        for partition in partitions:
            offsets.add(partition)
        for name, noted in offsets.checkpoints.items():
            self._write_offsets(name, noted)

    def write_high_watermarks(self, partitions: Iterable[Partition]) -> None:
        offsets = {
            one.topic_partition: one.high_watermark for one in partitions if one.topic_partition != METADATA_PARTITION
        }
        self._write_offsets(HIGH_WATERMARK_CHECKPOINT, offsets)

    def write_cleaner_offsets(self) -> None:
        self._write_offsets(CLEANER_CHECKPOINT, self.cleaner_offsets())

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.storage.check()
        self._replace(name, format_offsets(offsets))
        self._checkpoints[name] = dict(offsets)

    def _replace(self, name: str, content: bytes) -> None:
        path = f"{self.path}/{name}"
        try:
            replace_file(self.disk, path, content)
        except OSError as error:
            raise self.storage.fail(error, f"writing {path}") from error

    # --- coming from another directory --------------------------------------------------------------------------------

    def admit(self, partition: Partition) -> None:
        """Give a partition that was moved here its final name."""
        partition.rename_directory(f"{self.path}/{partition.topic_partition}")
        self._note_arrival(partition.topic_partition)

    def promote(self, key: TopicPartition) -> None:
        """The same for one that is not loaded yet."""
        self._rename(f"{self.path}/{self.futures[key]}", f"{self.path}/{key}")
        self._note_arrival(key)

    def _note_arrival(self, key: TopicPartition) -> None:
        self.futures.pop(key, None)
        self.found[key] = str(key)

    def drop_future(self, key: TopicPartition, unique: str) -> None:
        """Let what was copied of a partition leave; it was never loaded."""
        name = marked_directory_name(key, unique, DELETE_SUFFIX)
        self._rename(f"{self.path}/{self.futures.pop(key)}", f"{self.path}/{name}")
        self._leaving.append(name)

    def _rename(self, source: str, target: str) -> None:
        try:
            self.disk.rename(source, target)
        except OSError as error:
            raise self.storage.fail(error, f"renaming {source}") from error
        self._sync_names()

    def _sync_names(self) -> None:
        try:
            self.disk.sync_directory(self.path)
        except OSError as error:
            raise self.storage.fail(error, f"syncing {self.path}") from error

    # --- leaving ------------------------------------------------------------------------------------------------------

    def remove_partition(self, partition: Partition, unique: str, *, sync: bool = False) -> None:
        """Take a partition out of sight; `take_leaving` gives it to be removed. `unique` is 32 hexadecimal digits.

        With `sync` the name is gone for good, even after a power cut.
        """
        name = marked_directory_name(partition.topic_partition, unique, DELETE_SUFFIX)
        partition.rename_directory(f"{self.path}/{name}")
        if sync:
            self._sync_names()
        self.found.pop(partition.topic_partition, None)
        self.futures.pop(partition.topic_partition, None)
        for offsets in self._checkpoints.values():
            offsets.pop(partition.topic_partition, None)
        self._leaving.append(name)

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """The id of the topic whose partition was found here; None if its directory does not say or cannot be read."""
        name = self.found.get(partition) or self.futures[partition]
        try:
            return parse_partition_metadata(read_all(self.disk, f"{self.path}/{name}/{PARTITION_METADATA_FILE}"))
        except (FileNotFoundError, CheckpointError):
            return None

    def set_aside(self, partition: TopicPartition, unique: str) -> str:
        """Mark a directory that the cluster does not know as stray; nothing in it is touched. Gives its new name."""
        name = marked_directory_name(partition, unique, STRAY_SUFFIX)
        known = self.found if partition in self.found else self.futures
        self._rename(f"{self.path}/{known.pop(partition)}", f"{self.path}/{name}")
        return name

    def take_leaving(self) -> list[str]:
        """The directories that wait for their removal, which is then the caller's: `remove_tree` in a thread."""
        leaving, self._leaving = self._leaving, []
        return [f"{self.path}/{name}" for name in leaving]


class RecoveryOffsets:
    """How far partitions are synced and where they start, for the two checkpoints that recovery goes by."""

    def __init__(self) -> None:
        self._points: dict[TopicPartition, int] = {}
        self._starts: dict[TopicPartition, int] = {}

    def add(self, partition: Partition) -> None:
        if partition.topic_partition == METADATA_PARTITION:
            return
        self._points[partition.topic_partition] = partition.recovery_point
        # Apache Kafka lists only those that start inside a segment. But a new segment's name may not be on the disk yet
        # when this file is, and without both a log whose older segments are gone would begin at 0 again.
        if partition.log_start_offset > 0:
            self._starts[partition.topic_partition] = partition.log_start_offset

    @property
    def checkpoints(self) -> dict[str, dict[TopicPartition, int]]:
        """By name, in the order in which they are to be written.

        A log start raises the recovery point over records that no flush has reached, so a recovery point must not be
        on the disk before the start that it relies on.
        """
        return {LOG_START_CHECKPOINT: self._starts, RECOVERY_POINT_CHECKPOINT: self._points}


def remove_tree(disk: Disk, path: str) -> None:
    """Remove a partition's directory with all its files."""
    for entry in disk.list_directory(path):
        disk.unlink(f"{path}/{entry.name}")
    disk.remove_directory(path)


def directory_problems(
    paths: Iterable[str], opened: Callable[[str], LogDirectory], *, cluster_id: str | None, node_id: int
) -> list[str]:
    """Why a node must not start on these directories; each line names the thing and what to do."""
    problems: list[str] = []
    clusters: dict[str, str] = {}
    identities: dict[bytes, str] = {}
    for path in paths:
        try:
            properties = opened(path).properties
        except FileNotFoundError:
            problems.append(f"{path} is not formatted (it has no {META_PROPERTIES_FILE}); run `ottla storage format`")
            continue
        except (MetaPropertiesError, OSError) as error:
            problems.append(f"{path}: {error}")
            continue
        clusters[path] = properties.cluster_id
        if properties.node_id != node_id:
            problems.append(
                f"{path} belongs to node {properties.node_id}, not to node {node_id}; correct node.id or log.dirs"
            )
        if properties.directory_id is not None:
            other = identities.setdefault(properties.directory_id, path)
            if other != path:
                problems.append(f"{path} and {other} have the same directory.id; one is a copy of the other")
    wanted = cluster_id or next(iter(clusters.values()), None)
    problems += [
        f"{path} belongs to cluster {found}, not to {wanted}; correct log.dirs"
        for path, found in clusters.items()
        if found != wanted
    ]
    return problems
