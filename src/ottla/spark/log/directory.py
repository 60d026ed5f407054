"""Finds the partitions in log directories, and their files.

A path names a log directory (one of a broker's `log.dirs`) or the directory of a single partition; then the checkpoints
are in its parent. Temporary directories and files (`-delete`, `-stray`, `-future`, `.deleted`, `.cleaned`, `.swap`) are
ignored.

A partition may be found more than once, if directories of several brokers are given: these are replicas. They must
belong to one cluster, and the one with the longest log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.log.checkpoint import CheckpointError, parse_offsets, parse_partition_metadata
from ottla.log.names import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TopicPartition,
    parse_directory_name,
    parse_file_name,
)
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.storage import Entry, Storage, absolute, storage_of
from ottla.wire import uuid_text
from ottla.wire.properties import META_PROPERTIES_FILE, MetaPropertiesError, read_meta_properties

__all__ = ["LogDirectory", "PartitionFiles", "SegmentFiles", "find_partitions", "list_partition", "read_file"]

METADATA_SNAPSHOT_SUFFIX: Final = ".checkpoint"
_CHECKPOINTS: Final = (LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT)


@dataclass(frozen=True)
class LogDirectory:
    """The properties of one log directory, which all its partitions share."""

    path: str
    cluster_id: str | None = None
    is_clean: bool = False
    """Whether the broker was stopped cleanly and has not started since."""
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def offset(self, checkpoint: str, partition: TopicPartition) -> int | None:
        return self.offsets.get(checkpoint, {}).get(partition)


@dataclass(frozen=True)
class SegmentFiles:
    base_offset: int
    size_bytes: int
    indexes: frozenset[str]
    """Those of `.index`, `.timeindex` and `.txnindex` that exist."""


@dataclass(frozen=True)
class PartitionFiles:
    """The files of a partition, with their sizes when they were listed."""

    uri: str
    """The directory that other processes open: the one that the user named, or one below it."""
    storage: Storage
    path: str
    topic_partition: TopicPartition
    topic_id: str | None
    directory: LogDirectory
    segments: tuple[SegmentFiles, ...]
    producer_snapshots: tuple[int, ...]
    """Their end offsets, in ascending order."""
    metadata_snapshots: tuple[str, ...]
    """Names of `.checkpoint` files, in ascending order."""

    @property
    def log_start_offset(self) -> int:
        checkpoint = self.directory.offset(LOG_START_CHECKPOINT, self.topic_partition)
        return max(checkpoint or 0, self.segments[0].base_offset if self.segments else 0)

    @property
    def high_watermark(self) -> int | None:
        return self.directory.offset(HIGH_WATERMARK_CHECKPOINT, self.topic_partition)

    @property
    def recovery_point(self) -> int:
        """Everything below this offset has been flushed, including indexes."""
        return self.directory.offset(RECOVERY_POINT_CHECKPOINT, self.topic_partition) or 0

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"


def read_file(storage: Storage, path: str) -> bytes | None:
    """The content of a small file; None if it does not exist."""
    try:
        file = storage.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()


def find_partitions(paths: Iterable[str], is_wanted: Callable[[TopicPartition], bool]) -> list[PartitionFiles]:
    """The wanted partitions of all paths, with all replicas. Raises OttlaSparkError if they are of two clusters."""
    found: list[PartitionFiles] = []
    for path in paths:
        found += _find_below(path, is_wanted)
    clusters = {each.directory.cluster_id: each.directory.path for each in found if each.directory.cluster_id}
    if len(clusters) > 1:
        (one, first), (two, second) = list(clusters.items())[:2]
        raise OttlaSparkError(f"option path: {first} belongs to cluster {one}, {second} to {two}: read one at a time")
    return found


def _find_below(uri: str, is_wanted: Callable[[TopicPartition], bool]) -> Iterator[PartitionFiles]:
    uri = absolute(uri)
    storage, path = storage_of(uri)
    entries = _listed(storage, path, uri)
    own_name = parse_directory_name(path.rpartition("/")[2])
    if own_name is not None and any(_is_segment(entry) for entry in entries):
        directory = _read_directory(storage, path.rpartition("/")[0] or "/", None)
        if is_wanted(own_name[0]):
            yield _partition(uri, storage, path, own_name[0], directory, entries)
        return
    directory = _read_directory(storage, path, {entry.name for entry in entries})
    for entry in sorted(entries):
        parsed = parse_directory_name(entry.name) if entry.is_directory else None
        if parsed is not None and not parsed[1] and is_wanted(parsed[0]):
            inner = f"{path}/{entry.name}"
            try:
                files = storage.list(inner)
            except FileNotFoundError:  # deleted a moment ago
                continue
            yield _partition(f"{uri}/{entry.name}", storage, inner, parsed[0], directory, files)


def list_partition(uri: str) -> PartitionFiles:
    """The files in one partition's directory now. Raises FileNotFoundError if it is gone."""
    storage, path = storage_of(uri)
    parsed = parse_directory_name(path.rpartition("/")[2])
    assert parsed is not None, uri
    return _partition(uri, storage, path, parsed[0], LogDirectory(path), storage.list(path))


def _listed(storage: Storage, path: str, uri: str) -> list[Entry]:
    try:
        return storage.list(path)
    except NotADirectoryError:
        raise OttlaSparkError(f"option path: {uri} is not a directory") from None
    except FileNotFoundError:
        raise OttlaSparkError(f"option path: {uri} does not exist") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OttlaSparkError(f"option path: {uri} cannot be read: {reason}") from None


def _is_segment(entry: Entry) -> bool:
    parsed = parse_file_name(entry.name)
    return parsed is not None and parsed.kind == LOG_SUFFIX and not parsed.state


# --- one log directory ------------------------------------------------------------------------------------------------


def _read_directory(storage: Storage, path: str, names: set[str] | None) -> LogDirectory:
    """`names` are the files there, if they are known: on remote file systems, trying a missing file takes time."""

    def content(name: str) -> bytes | None:
        return read_file(storage, f"{path}/{name}") if names is None or name in names else None

    return LogDirectory(
        path=path,
        cluster_id=_cluster_id(path, content(META_PROPERTIES_FILE)),
        is_clean=content(CLEAN_SHUTDOWN_FILE) is not None,
        offsets={name: _offsets(path, name, content(name)) for name in _CHECKPOINTS},
    )


def _cluster_id(path: str, data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return read_meta_properties(data).cluster_id
    except MetaPropertiesError as error:
        raise OttlaSparkError(f"{path}/{META_PROPERTIES_FILE}: {error}") from None


def _offsets(path: str, name: str, data: bytes | None) -> dict[TopicPartition, int]:
    try:
        return parse_offsets(data or b"")
    except CheckpointError as error:
        # Ignoring it could show records that were deleted, or those that may yet be truncated.
        raise OttlaSparkError(f"{path}/{name}: {error}") from None


# --- one partition ----------------------------------------------------------------------------------------------------


def _partition(
    uri: str,
    storage: Storage,
    path: str,
    topic_partition: TopicPartition,
    directory: LogDirectory,
    entries: list[Entry],
) -> PartitionFiles:
    sizes: dict[int, int] = {}
    indexes: dict[int, set[str]] = {}
    snapshots: list[int] = []
    for entry in entries:
        parsed = parse_file_name(entry.name)
        if parsed is None or parsed.state:
            continue
        if parsed.kind == LOG_SUFFIX:
            sizes[parsed.offset] = entry.size_bytes
        elif parsed.kind == SNAPSHOT_SUFFIX:
            snapshots.append(parsed.offset)
        else:
            indexes.setdefault(parsed.offset, set()).add(parsed.kind)
    return PartitionFiles(
        uri=uri,
        storage=storage,
        path=path,
        topic_partition=topic_partition,
        topic_id=_topic_id(storage, path, entries),
        directory=directory,
        segments=tuple(SegmentFiles(base, sizes[base], frozenset(indexes.get(base, ()))) for base in sorted(sizes)),
        producer_snapshots=tuple(sorted(snapshots)),
        metadata_snapshots=tuple(sorted(each.name for each in entries if each.name.endswith(METADATA_SNAPSHOT_SUFFIX))),
    )


def _topic_id(storage: Storage, path: str, entries: list[Entry]) -> str | None:
    if not any(entry.name == PARTITION_METADATA_FILE for entry in entries):
        return None
    try:
        return uuid_text(parse_partition_metadata(read_file(storage, f"{path}/{PARTITION_METADATA_FILE}") or b""))
    except CheckpointError as error:
        raise OttlaSparkError(f"{path}/{PARTITION_METADATA_FILE}: {error}") from None
