"""Loads the partitions of a node at its start; directories that do not belong to the cluster are marked as stray.

The node serves nothing meanwhile, but it heeds signals and reports progress: after a crash this can take long. A log
directory that cannot be read is offline from then on; the others are loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from ottla.broker.config.settings import Settings
from ottla.broker.loop.clock import Clock
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.storage import StorageProblem
from ottla.core.metadata.image import Changes, MetadataImage
from ottla.log.directory import METADATA_PARTITION, LogDirectory
from ottla.log.errors import StorageError
from ottla.log.names import HIGH_WATERMARK_CHECKPOINT, TopicPartition
from ottla.log.partition import Partition
from ottla.log.recovery import LoadRequest, RecoveryReport, load_steps

__all__ = ["PartitionLoader", "tell"]

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.02
_PROGRESS_SECONDS: Final = 1.0

_Found = tuple[LogDirectory, TopicPartition]


def tell(report: RecoveryReport) -> None:
    """Log what a load has found, if it is worth a line."""
    for line in report.lines():
        log.log(logging.WARNING if report.is_eventful else logging.DEBUG, "%s", line)


class PartitionLoader:
    """One pass over the log directories of a node."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        image: MetadataImage,
        replicas: Replicas,
        settings: Settings,
        clock: Clock,
        new_uuid: Callable[[], bytes],
    ) -> None:
        self._directories = directories
        self._image = image
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        self._new_uuid = new_uuid
        self._logs: dict[TopicPartition, tuple[LogDirectory, Partition | None]] = {}
        """What was loaded; None for a log whose directory has failed."""
        self._copies: dict[TopicPartition, tuple[LogDirectory, Partition]] = {}

    async def run(self) -> dict[TopicPartition, tuple[LogDirectory, Partition]]:
        """Load everything, and make the replicas that have nothing on the disk yet.

        Gives the copies of partitions that were on their way to another directory when the node ended.
        """
        self._promote_arrived()
        found = [
            (directory, key)
            for directory in self._directories
            for key in list(directory.found)
            if key != METADATA_PARTITION
        ]
        await self._load_all([each for each in self._without_doubles(found) if self._belongs(*each)])
        for key, (directory, partition) in self._logs.items():
            if partition is None:
                if self._image.partition(*key) is not None:
                    self._replicas.leave_unread(directory, key)
            elif self._still_belongs(directory, partition):
                self._replicas.adopt(directory, partition)
        partitions = {(topic.topic_id, each.partition_id) for topic, each in self._image.partitions()}
        for _ in self._replicas.apply_steps(self._image, Changes(partitions=partitions)):
            pass
        moving = [
            (directory, key)
            for directory in self._directories
            for key in list(directory.futures)
            if not directory.is_offline
        ]
        await self._load_all([each for each in moving if self._is_moving(*each)])
        return {key: found for key, found in self._copies.items() if self._still_belongs(*found)}

    def _without_doubles(self, found: list[_Found]) -> list[_Found]:
        """Each partition once. If two directories have one, the cluster tells where it is: the other one could not be
        written any more when the partition had moved away from there."""
        places: dict[TopicPartition, LogDirectory] = {}
        for directory, key in found:
            other = places.setdefault(key, directory)
            if other is directory:
                continue
            partition = self._image.partition(*key)
            by_id = {each.properties.directory_id: each for each in (other, directory)}
            right = None if partition is None else by_id.get(partition.directory_of(self._replicas.node_id))
            if right is None:
                raise StorageProblem(f"{key} lies in {other.path} and in {directory.path}; remove one of them")
            wrong = other if right is directory else directory
            places[key] = right
            name = wrong.set_aside(key, self._new_uuid().hex())
            log.warning("%s lies in two directories; it belongs to %s, what %s has was renamed to %s",
                        key, right.path, wrong.path, name)  # fmt: skip
        return [(directory, key) for key, directory in places.items()]

    def _promote_arrived(self) -> None:
        """Take a `-future` copy for the partition where a crash left nothing else of it."""
        if any(directory.is_offline for directory in self._directories):
            return  # the partition may be in there
        found = {key for directory in self._directories for key in directory.found}
        for directory in self._directories:
            for key in [each for each in directory.futures if each not in found]:
                log.warning("the move of %s to %s was interrupted; continuing there", key, directory.path)
                directory.promote(key)
                found.add(key)

    def _is_moving(self, directory: LogDirectory, key: TopicPartition) -> bool:
        """Whether a move is to be resumed; if not, its copy is marked as stray or removed."""
        if not self._belongs(directory, key):
            return False
        replica = self._replicas.by_key[key]
        if replica.is_offline:
            return False  # what is missing cannot be read now
        if replica.directory is directory or key in self._copies:
            directory.drop_future(key, self._new_uuid().hex())
            return False
        return True

    async def _load_all(self, found: list[_Found]) -> None:
        began = paused = told = self._clock.precise_s()
        for number, (directory, key) in enumerate(found):
            for _ in self._load(directory, key):
                now = self._clock.precise_s()
                if now - told >= _PROGRESS_SECONDS:
                    told = now
                    log.info("loading partitions done=%d of=%d seconds=%.1f", number, len(found), now - began)
                if now - paused >= _SLICE_SECONDS:
                    await asyncio.sleep(0)
                    paused = self._clock.precise_s()

    def _load(self, directory: LogDirectory, key: TopicPartition) -> Iterator[None]:
        if directory.is_offline:
            self._leave_unread(directory, key)
            return
        request = directory.request_for(key, self._settings.log_config(key.topic))
        steps = self._steps(directory, request)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                partition, report = stop.value
                break
            except StorageError as error:
                if all(each.is_offline for each in self._directories):
                    raise
                log.error("log directory %s is offline: %s", directory.path, error)  # noqa: TRY400 - no bug of ours
                self._leave_unread(directory, key)
                return
            yield
        tell(report)
        committed = directory.offset(HIGH_WATERMARK_CHECKPOINT, key)
        if committed is not None:
            partition.update_high_watermark(committed)
        if key not in directory.found:
            self._copies[key] = (directory, partition)
        else:
            self._logs[key] = (directory, partition)
        yield

    def _leave_unread(self, directory: LogDirectory, key: TopicPartition) -> None:
        if key in directory.found:
            self._logs[key] = (directory, None)

    def _steps(
        self, directory: LogDirectory, request: LoadRequest
    ) -> Generator[object, None, tuple[Partition, RecoveryReport]]:
        """Load a partition. With `ottla.fsync` it is synced, too: a process that was killed may have left records that
        are in no file for good, and its leader counts on all that a replica has."""
        partition, report = yield from load_steps(directory.storage, request, self._clock.wall_ms())
        if self._replicas.waits_for_disk and partition.recovery_point < partition.log_end_offset:
            partition.flush()
        return partition, report

    def _belongs(self, directory: LogDirectory, key: TopicPartition) -> bool:
        """Whether a directory is that of a partition of ours; if not, it is set aside."""
        topic_id = directory.topic_id(key)
        if self._is_known(key, topic_id):
            return True
        name = directory.set_aside(key, self._new_uuid().hex())
        if topic_id is not None:
            log.warning("%s is unknown to the cluster; renamed its directory to %s", key, name)
        else:
            log.error("%s/%s has no partition.metadata, which says of which topic its records are; renamed it to %s",
                      directory.path, key, name)  # fmt: skip
        return False

    def _still_belongs(self, directory: LogDirectory, partition: Partition) -> bool:
        """The same of a log that was loaded: its topic may have been deleted meanwhile, and made again."""
        key = partition.topic_partition
        if self._is_known(key, partition.topic_id):
            return True
        partition.close_files()
        return not directory.is_offline and self._belongs(directory, key)

    def _is_known(self, key: TopicPartition, topic_id: bytes | None) -> bool:
        """By name and topic id: a deleted topic may have had the same name."""
        topic, partition = self._image.topic(key.topic), self._image.partition(*key)
        if topic is None or partition is None or self._replicas.node_id not in partition.replicas:
            return False
        return topic_id == topic.topic_id
