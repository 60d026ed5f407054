"""The log directories of a node: locked, formatted if they are new, checked and opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ottla.broker.config import NodeConfig
from ottla.broker.formatting import format_directories, is_empty, is_formatted, random_uuid
from ottla.broker.settings import Settings
from ottla.log.directory import LogDirectory, directory_problems
from ottla.log.disk import Disk
from ottla.log.files import LogStorage, OpenFiles
from ottla.log.lock import DirectoryLock, LockedError
from ottla.metadata.uuids import draw

__all__ = ["NodeStorage", "StorageProblem", "cordoned", "lock_directories"]


class StorageProblem(Exception):
    """Directories on which a node must not start; the text says why and what can be done."""


def lock_directories(disk: Disk, paths: Sequence[str]) -> list[DirectoryLock]:
    """Take the locks of directories, which are made if need be; StorageProblem if one cannot be had."""
    locks: list[DirectoryLock] = []
    try:
        for path in paths:
            disk.make_directory(path)
            locks.append(DirectoryLock(path))
    except (LockedError, OSError) as error:
        release(locks, remove=False)
        raise StorageProblem(_reason(path, error)) from None
    return locks


def release(locks: Sequence[DirectoryLock], *, remove: bool) -> None:
    for lock in locks:
        lock.release(remove=remove)


def cordoned(settings: Settings, directories: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The directories that take no new replicas (KIP-1066)."""
    paths = settings["cordoned.log.dirs"]
    return [each for each in directories if "*" in paths or each.path in paths]


def _reason(path: str, error: Exception) -> str:
    if isinstance(error, LockedError):
        return str(error)
    strerror = error.strerror if isinstance(error, OSError) else None
    return f"{path} cannot be used: {strerror or error}"


class NodeStorage:
    """The directories of a running node. `release` ends it."""

    def __init__(self, config: NodeConfig, disk: Disk, locks: Sequence[DirectoryLock], open_files_max: int) -> None:
        self.disk = disk
        self._locks = locks
        self._config = config
        open_files = OpenFiles(disk, open_files_max)
        self._opened: dict[str, LogDirectory] = {}
        self._storages = {path: LogStorage(disk, open_files=open_files, jitter=_jitter) for path in config.all_dirs}

    def format_if_new(self, now_ms: int, controller_port: int) -> bool:
        """Format empty directories, if nobody else can be meant to lead the cluster; whether it was done."""
        config = self._config
        unformatted = [path for path in config.all_dirs if not is_formatted(self.disk, path)]
        if len(unformatted) < len(config.all_dirs):
            return False
        used = [path for path in unformatted if not is_empty(self.disk, path)]
        others = config.other_controllers()
        if used:
            raise StorageProblem(f"{used[0]} is neither empty nor a log directory: it has no meta.properties")
        if others:
            raise StorageProblem(
                f"{config.log_dirs[0]} is not formatted, and the configuration names other controllers "
                f"({', '.join(others)}); run `ottla storage format --cluster-id ID --data {config.log_dirs[0]}` first"
            )
        format_directories(self.disk, config, now_ms, controller_port=controller_port)
        return True

    def open(self) -> None:
        """Read what the directories hold; StorageProblem if a node must not start on them."""
        problems = directory_problems(self._config.all_dirs, self._open, cluster_id=None, node_id=self._config.node_id)
        if problems:
            raise StorageProblem("; ".join(problems))

    def _open(self, path: str) -> LogDirectory:
        self._opened[path] = LogDirectory.open(self._storages[path], path)
        return self._opened[path]

    @property
    def directories(self) -> list[LogDirectory]:
        """Of data."""
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
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def directory_ids(self) -> list[bytes]:
        """The ids of the online data directories, in order."""
        return sorted(
            directory.properties.directory_id or draw(random_uuid)
            for directory in self.directories
            if not directory.is_offline
        )

    def release(self, *, remove: bool) -> None:
        release(self._locks, remove=remove)


def _jitter(limit: int) -> int:
    return int.from_bytes(os.urandom(8), "big") % limit if limit > 0 else 0
