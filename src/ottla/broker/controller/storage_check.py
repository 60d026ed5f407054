"""The check of a log directory behind `ottla storage check`: reads it, changes nothing, says whether a node can start.

`check_storage` collects findings. A problem is something on which Apache Kafka or ottla would refuse to start, or start
and lose something; a note is something they deal with. What the findings rest on is in the table below, each row tried
with Apache Kafka 4.3.1.

==============================================  ======================================================================
what                                            what a start makes of it
==============================================  ======================================================================
no or bad meta.properties                       refused
directory.id missing                            the node gets a new one and is no voter any more
another process holds the lock                  refused, by Apache Kafka only after it has written
a directory that is no partition's              refused by Apache Kafka
damage inside the metadata log                  all later changes are dropped by Apache Kafka; ottla refuses
metadata log starts late, no snapshot           refused
metadata.version beyond what is known           refused
a feature beyond what is known                  refused; share.version 2 is known to ottla alone
the node votes with another directory           it waits for ever
partition.metadata missing or of another topic  the partition is set aside and starts empty
clean stop, and yet a torn log                  the next records are written where no reader finds them
partition without a directory                   starts empty
directory without a partition                   set aside
==============================================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ottla.broker.controller.metadata_load import read_quorum_state
from ottla.broker.controller.metadata_replay import MetadataLogError, MetadataReplay, refuse_loss
from ottla.broker.controller.metadata_snapshots import SnapshotFiles
from ottla.broker.controller.synced_mark import read_mark
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.features import SUPPORTED
from ottla.core.metadata.format import BOOTSTRAP_CHECKPOINT, read_bootstrap
from ottla.core.metadata.image import MetadataImage
from ottla.core.quorum.stored import StoredStateError
from ottla.log.checkpoint import CheckpointError, parse_partition_metadata
from ottla.log.cuts import cut_offset, sound_behind
from ottla.log.directory import METADATA_PARTITION, NO_BROKER_EPOCH, LogDirectory
from ottla.log.disk import Disk, read_all
from ottla.log.files import LogStorage
from ottla.log.names import (
    FUTURE_SUFFIX,
    LOG_SUFFIX,
    PARTITION_METADATA_FILE,
    TopicPartition,
    parse_directory_name,
    parse_file_name,
)
from ottla.log.scan import ScanEnd, check_batches
from ottla.log.scan import read_batch as read_whole
from ottla.wire import uuid_text
from ottla.wire.batch import BatchView
from ottla.wire.fault import WireError
from ottla.wire.properties import META_PROPERTIES_FILE, MetaPropertiesError

__all__ = ["StorageCheck", "StorageFinding", "check_partitions", "check_storage"]

PROBLEM: Final = "problem"
NOTE: Final = "note"


class StorageFinding(NamedTuple):
    level: str
    text: str


class StorageCheck:
    """The findings in one log directory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.findings: list[StorageFinding] = []
        self.directory: LogDirectory | None = None
        self.metadata: MetadataReplay | None = None
        self.log_bytes = 0
        self.log_ends: dict[TopicPartition, int] = {}
        """The offset behind the last sound record of each partition that was checked."""

    @property
    def has_problems(self) -> bool:
        return any(finding.level == PROBLEM for finding in self.findings)

    def problem(self, text: str) -> None:
        self.findings.append(StorageFinding(PROBLEM, text))

    def note(self, text: str) -> None:
        self.findings.append(StorageFinding(NOTE, text))


def check_storage(
    disk: Disk, path: str, *, is_deep: bool = False, progress: Callable[[str], object] = str
) -> StorageCheck:
    """Check a directory. `is_deep` reads all data, not only the ends of logs; `progress` is told the current step."""
    found = StorageCheck(path)
    try:
        found.directory = LogDirectory.open(LogStorage(disk), path)
    except FileNotFoundError:
        found.problem(f"{path} has no {META_PROPERTIES_FILE}: it is not formatted")
        return found
    except (MetaPropertiesError, OSError) as error:
        found.problem(f"{path}: {error}")
        return found
    _check_identity(found, found.directory)
    _check_names(found, found.directory)
    _check_bootstrap(found, found.directory)
    if METADATA_PARTITION in found.directory.found:
        progress(str(METADATA_PARTITION))
        _check_metadata(found, found.directory)
    if found.metadata is not None:
        _check_cluster(found, found.directory, found.metadata)
        check_partitions(found, found.directory, found.metadata.image, is_deep=is_deep, progress=progress)
    return found


# --- the directory itself ---------------------------------------------------------------------------------------------


def _check_identity(found: StorageCheck, directory: LogDirectory) -> None:
    if directory.properties.directory_id is None:
        found.problem(f"{META_PROPERTIES_FILE} has no directory.id; with a new one the node is no longer a voter")
    is_new = set(directory.found) <= {METADATA_PARTITION}
    if not directory.is_clean and not is_new:
        found.note("the last stop was not clean: logs are recovered at the next start, which takes longer")


def _check_names(found: StorageCheck, directory: LogDirectory) -> None:
    for entry in directory.disk.list_directory(directory.path):
        if not entry.is_directory or entry.name == "lost+found":
            continue
        parsed = parse_directory_name(entry.name)
        if parsed is None:
            found.problem(f"{entry.name} is not a partition directory; Apache Kafka refuses to start with it")
        elif parsed[1] == FUTURE_SUFFIX:
            found.note(f"{entry.name} is being moved from another log directory; the next start continues the move")
        elif parsed[1]:
            found.note(f"{entry.name} is being deleted, or was set aside")


def _check_bootstrap(found: StorageCheck, directory: LogDirectory) -> None:
    path = f"{directory.path}/{BOOTSTRAP_CHECKPOINT}"
    if not directory.disk.exists(path):
        return
    try:
        read_bootstrap(read_all(directory.disk, path))
    except (MetadataFault, WireError) as error:
        found.problem(f"{BOOTSTRAP_CHECKPOINT} cannot be read: {error}")


# --- the metadata -----------------------------------------------------------------------------------------------------


def _check_metadata(found: StorageCheck, directory: LogDirectory) -> None:
    path = f"{directory.path}/{METADATA_PARTITION}"
    replay = MetadataReplay()
    try:
        snapshots = SnapshotFiles(directory.disk, path)
        _check_checkpoint_names(found, directory.disk, path)
        newest, first = snapshots.newest, snapshots.bootstrap()
        if newest is not None:
            replay.take_snapshot(snapshots.read(newest), newest)
        elif first is not None:
            replay.take_bootstrap(first)
        start = min(_segments(directory.disk, path), default=0)
        if start > replay.image.last_offset + 1:
            found.problem(f"the metadata log starts at offset {start}, and no snapshot contains the records before it")
            return
        replay.take_batches(_metadata_batches(found, directory.disk, path, replay.image.last_offset + 1))
        read_quorum_state(directory.disk, path)
    except (MetadataLogError, MetadataFault, WireError, StoredStateError) as error:
        found.problem(f"the metadata cannot be read: {error}")
        return
    for fault in replay.faults:
        found.note(f"the metadata log has an invalid record: {fault}")
    found.metadata = replay


def _check_checkpoint_names(found: StorageCheck, disk: Disk, path: str) -> None:
    for entry in disk.list_directory(path):
        if entry.name.endswith(".checkpoint") and len(entry.name) != len(f"{0:020}-{0:010}.checkpoint"):
            found.problem(
                f"{METADATA_PARTITION}/{entry.name} is not a valid snapshot name; Apache Kafka refuses to start"
            )


def _segments(disk: Disk, path: str) -> dict[int, tuple[str, int]]:
    """Base offset -> path and size of the `.log` files of a partition, in order."""
    segments = {}
    for entry in disk.list_directory(path):
        parsed = parse_file_name(entry.name)
        if parsed is not None and parsed.kind == LOG_SUFFIX and not parsed.state:
            segments[parsed.offset] = (f"{path}/{entry.name}", entry.size_bytes)
    return dict(sorted(segments.items()))


def _metadata_batches(found: StorageCheck, disk: Disk, path: str, start: int) -> Iterator[BatchView]:
    for base_offset, (file_path, size_bytes) in _segments(disk, path).items():
        next_offset = base_offset
        file = disk.open(file_path)
        try:
            walk = check_batches(file, size_bytes)
            while True:
                try:
                    item = next(walk)
                except StopIteration as stop:
                    end: ScanEnd = stop.value
                    break
                if item is None:
                    continue
                batch = item[1]
                next_offset = batch.last_offset + 1
                if isinstance(batch, BatchView) and batch.last_offset >= start:
                    whole = read_whole(file, item[0], batch.size_bytes)
                    assert isinstance(whole, BatchView)
                    yield whole
        finally:
            file.close()
        if end.reason:
            refuse_loss(disk, read_mark(disk, path), file_path, end.position, next_offset, end.reason)
            found.note(
                f"{file_path} has a torn end at byte {end.position}, which was never acknowledged and will be truncated"
            )


def _check_cluster(found: StorageCheck, directory: LogDirectory, replay: MetadataReplay) -> None:
    properties, image = directory.properties, replay.image
    voters = replay.control.voters
    own = properties.directory_id
    if replay.control.kraft_version >= 1 and own is not None and voters.find(properties.node_id, own) is None:
        if properties.node_id in voters.ids or not voters:
            found.problem(f"node {properties.node_id} with directory {uuid_text(own)} is not among the quorum's voters")
        else:
            found.note(f"node {properties.node_id} is no voter: it needs controllers on other nodes")
    for name, level in image.features.items():
        high = SUPPORTED[name][1]
        if level > high:
            found.problem(
                f"{name} is at {level}; Apache Kafka 4.3.1 supports at most {high} and refuses to start, "
                f"and ottla needs unstable.feature.versions.enable=true"
            )
    broker = image.brokers.get(properties.node_id)
    epoch = directory.previous_broker_epoch
    if directory.is_clean and epoch != NO_BROKER_EPOCH and broker is not None and broker.epoch != epoch:
        found.note(f"the clean-shutdown file has broker epoch {epoch}, the metadata has {broker.epoch}")


# --- partitions -------------------------------------------------------------------------------------------------------


def check_partitions(
    found: StorageCheck,
    directory: LogDirectory,
    image: MetadataImage,
    *,
    is_deep: bool = False,
    progress: Callable[[str], object] = str,
) -> None:
    """Check the logs in a directory; the metadata may come from another one."""
    node_id = directory.properties.node_id
    for key in sorted(directory.found):
        if key == METADATA_PARTITION:
            continue
        progress(str(key))
        partition = image.partition(*key)
        if partition is None or node_id not in partition.replicas:
            found.note(f"{key} is unknown to the cluster; it will be set aside")
        else:
            _check_topic_id(found, directory, image, key)
        _check_log(found, directory, key, is_deep=is_deep)
        _note_cuts(found, directory, key)
    own = directory.properties.directory_id
    for topic, partition in image.partitions():
        key = TopicPartition(topic.name, partition.partition_id)
        is_here = node_id in partition.replicas and partition.directory_of(node_id) == own
        if is_here and key not in directory.found:
            found.note(f"{key} has no directory: it is empty, or it was lost")


def _check_topic_id(found: StorageCheck, directory: LogDirectory, image: MetadataImage, key: TopicPartition) -> None:
    path = f"{directory.path}/{directory.found[key]}/{PARTITION_METADATA_FILE}"
    topic = image.topic(key.topic)
    if not directory.disk.exists(path):
        found.problem(f"{key} has no {PARTITION_METADATA_FILE}; Apache Kafka sets it aside and starts an empty one")
        return
    try:
        topic_id = parse_partition_metadata(read_all(directory.disk, path))
    except CheckpointError as error:
        found.problem(f"{key}: {PARTITION_METADATA_FILE} cannot be read: {error}")
        return
    if topic is not None and topic_id != topic.topic_id:
        found.note(f"{key} belongs to a topic of the same name that was deleted; it will be set aside")


def _check_log(found: StorageCheck, directory: LogDirectory, key: TopicPartition, *, is_deep: bool) -> None:
    segments = list(_segments(directory.disk, f"{directory.path}/{directory.found[key]}").values())
    found.log_bytes += sum(size_bytes for _, size_bytes in segments)
    for path, size_bytes in segments if is_deep else segments[-1:]:
        end, next_offset = _end_of_sound(directory.disk, path, size_bytes)
        is_last = path == segments[-1][0]
        if is_last:
            found.log_ends[key] = next_offset
        if not end.reason:
            continue
        text = f"{path} is corrupt from byte {end.position} on ({end.reason})"
        if directory.is_clean or not is_last:
            found.problem(f"{text} although the shutdown was clean; remove .kafka_cleanshutdown to truncate it there")
        else:
            found.note(
                f"{text}; it is truncated there at the next start{_kept_behind(directory.disk, path, end.position)}"
            )


def _kept_behind(disk: Disk, path: str, position: int) -> str:
    sound = sound_behind(disk, path, position)
    return f", and {sound} after it are kept in another file" if sound.is_worth_keeping else ""


def _note_cuts(found: StorageCheck, directory: LogDirectory, key: TopicPartition) -> None:
    folder = f"{directory.path}/{directory.found[key]}"
    for entry in sorted(directory.disk.list_directory(folder)):
        if cut_offset(entry.name) is not None:
            path = f"{folder}/{entry.name}"
            found.note(
                f"{path} keeps {entry.size_bytes} bytes that recovery has truncated from {key}, with "
                f"{sound_behind(directory.disk, path, 0)}; `ottla dump` shows them, and the file can be removed"
            )


def _end_of_sound(disk: Disk, path: str, size_bytes: int) -> tuple[ScanEnd, int]:
    """Where the sound batches of a segment end, and the offset behind them."""
    next_offset = int(path.rpartition("/")[2].partition(".")[0])
    file = disk.open(path)
    try:
        walk = check_batches(file, size_bytes)
        while True:
            try:
                item = next(walk)
            except StopIteration as stop:
                return stop.value, next_offset
            if item is not None:
                next_offset = item[1].last_offset + 1
    finally:
        file.close()
