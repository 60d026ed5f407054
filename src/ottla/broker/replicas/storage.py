"""The log directories of a node: locks, formats, checks and opens them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.config.settings import Settings
from ottla.broker.loop.randomness import Randomness
from ottla.broker.replicas.formatter import format_directories, is_empty, is_formatted
from ottla.core.metadata.uuids import draw
from ottla.log.directory import LogDirectory, directory_problems
from ottla.log.disk import Disk, Lock, read_all
from ottla.log.files import LogStorage, OpenFiles
from ottla.log.lock import LockedError
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties

__all__ = ["NodeStorage", "StorageProblem", "cordoned", "lock_directories"]


class StorageProblem(Exception):
    """A node cannot start on its log directories; the text says why and what to do."""


def lock_directories(
    disk: Disk, paths: Iterable[str], failed: dict[str, OSError] | None = None, needed: str = ""
) -> list[Lock]:
    """Take the locks of directories, which are made if need be; StorageProblem if one cannot be had.

    Where `failed` is given it gets those that cannot be used, and only the `needed` one must be usable.
    """
    locks: list[Lock] = []
    for path in paths:
        try:
            disk.make_directory(path)
            locks.append(disk.lock_directory(path))
        except (LockedError, OSError) as error:
            if failed is None or path == needed or isinstance(error, LockedError):
                release(locks, remove=False)
                raise StorageProblem(_reason(path, error)) from None
            failed[path] = error
    return locks


def release(locks: Sequence[Lock], *, remove: bool) -> None:
    for lock in locks:
        lock.release(remove=remove)


def cordoned(settings: Settings, directories: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The directories that take no new replicas (KIP-1066)."""
    paths = {os.path.abspath(path) if path != "*" else path for path in settings["cordoned.log.dirs"]}
    return [each for each in directories if "*" in paths or each.path in paths]


def _reason(path: str, error: Exception) -> str:
    if isinstance(error, LockedError):
        return str(error)
    strerror = error.strerror if isinstance(error, OSError) else None
    return f"{path} cannot be used: {strerror or error}"


class NodeStorage:
    """The directories of a running node. `release` ends it."""

    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        locks: Sequence[Lock],
        open_files_max: int,
        failed: dict[str, OSError],
        randomness: Randomness,
    ) -> None:
        self.disk = disk
        self._randomness = randomness
        self._locks = locks
        self._config = config
        self._failed = failed
        open_files = OpenFiles(disk, open_files_max)
        self._opened: dict[str, LogDirectory] = {}
        self._storages = {
            path: LogStorage(disk, open_files=open_files, jitter=randomness.below) for path in config.all_dirs
        }

    def format_if_new(self, now_ms: int, controller_port: int | None) -> bool:
        """Format empty directories, unless the configuration names other controllers; whether it was done."""
        config = self._config
        usable = [path for path in config.all_dirs if path not in self._failed]
        unformatted = [path for path in usable if not is_formatted(self.disk, path)]
        if len(unformatted) < len(usable):
            return False
        if self._failed:
            raise StorageProblem("; ".join(_reason(path, error) for path, error in self._failed.items()))
        used = [path for path in unformatted if not is_empty(self.disk, path)]
        others = config.other_controllers()
        if used:
            raise StorageProblem(f"{used[0]} is neither empty nor a log directory: it has no meta.properties")
        if others:
            raise StorageProblem(
                f"{config.log_dirs[0]} is not formatted, and the configuration names other controllers "
                f"({', '.join(others)}); run `ottla storage format --cluster-id ID --data {config.log_dirs[0]}` first"
            )
        format_directories(self.disk, config, now_ms, controller_port=controller_port, randomness=self._randomness)
        return True

    def open(self) -> None:
        """Read what the directories hold; StorageProblem if a node must not start on them.

        One that cannot be read is offline from the start, with all that is in it, if there are others.
        """
        config = self._config
        for path in config.all_dirs:
            if path != config.metadata_dir and path not in self._failed:
                self._try(path)
        usable = [path for path in config.all_dirs if path not in self._failed]
        problems = directory_problems(usable, self._open, cluster_id=None, node_id=config.node_id)
        if not set(config.log_dirs) - self._failed.keys():
            problems += [_reason(path, error) for path, error in self._failed.items()]
        if problems:
            raise StorageProblem("; ".join(problems))
        for path, error in self._failed.items():
            self._opened[path] = self._offline(path, error)

    def _try(self, path: str) -> None:
        try:
            read_all(self.disk, f"{path}/{META_PROPERTIES_FILE}")
        except FileNotFoundError:
            pass  # that is another problem
        except OSError as error:
            self._failed[path] = error

    def _offline(self, path: str, error: OSError) -> LogDirectory:
        """A directory of which nothing is known but that it has failed."""
        storage = self._storages[path]
        storage.fail(error, f"reading {path}")
        directory = LogDirectory(storage, path, MetaProperties(self.cluster_id, self._config.node_id))
        directory.notes.append(f"log directory {path} is offline: {error.strerror or error}")
        return directory

    def _open(self, path: str) -> LogDirectory:
        self._opened[path] = LogDirectory.open(self._storages[path], path)
        return self._opened[path]

    @property
    def directories(self) -> list[LogDirectory]:
        """The log directories with partitions, without one that holds only metadata."""
        return [self._opened[path] for path in self._config.log_dirs]

    @property
    def all(self) -> list[LogDirectory]:
        return list(self._opened.values())

    @property
    def metadata(self) -> LogDirectory:
        return self._opened[self._config.metadata_dir]

    @property
    def cluster_id(self) -> str:
        return self.metadata.properties.cluster_id

    @property
    def previous_broker_epoch(self) -> int:
        """The broker's epoch at its last stop, if all directories agree on it."""
        epochs = {directory.previous_broker_epoch for directory in self.directories if not directory.is_offline}
        return epochs.pop() if len(epochs) == 1 else -1

    def directory_ids(self) -> list[bytes]:
        """The ids of the online data directories, in order."""
        return sorted(
            directory.properties.directory_id or draw(self._randomness.uuid)
            for directory in self.directories
            if not directory.is_offline
        )

    def release(self, *, remove: bool) -> None:
        release(self._locks, remove=remove)
