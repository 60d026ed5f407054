"""Files of partitions that are opened on demand, so that 10,000 partitions fit into 1,024 open files.

A `LogFile` is a file of a partition, open or not. Whoever reads or writes asks it for its handle; `LogStorage` opens
it then and, over its limit, closes the one that was used longest ago. An answer that is still being sent pins its
file: a pinned file stays open, also after it was renamed or removed, so the bytes promised to a client stay readable.
Pins may push the count over the limit; there are no more of them than answers under way.

`LogStorage` is what the partitions of one log directory share: the disk, the open files, the files that wait for their
removal, the segments that wait for a background flush, and the failure, after which the whole directory is offline.
"""

from __future__ import annotations

import errno
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.log.disk import Disk, File
from ottla.log.errors import StorageError

if TYPE_CHECKING:
    from ottla.log.partition import Partition

__all__ = ["DEFAULT_OPEN_FILES_MAX", "Directory", "LogFile", "LogStorage", "OpenFiles"]

# The usual limit of a process is 1,024; the rest is for sockets and small files.
DEFAULT_OPEN_FILES_MAX: Final = 512


class Directory:
    """A partition's directory. Its files ask it for their path, so that renaming it renames them all."""

    __slots__ = ("path", "storage")

    def __init__(self, storage: LogStorage, path: str) -> None:
        self.storage = storage
        self.path = path

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"


class LogFile:
    """A file of a partition that is open only while there is need."""

    __slots__ = ("_handle", "_pin_count", "directory", "name")

    def __init__(self, directory: Directory, name: str) -> None:
        self.directory = directory
        self.name = name
        self._handle: File | None = None
        self._pin_count = 0

    def __repr__(self) -> str:
        return f"LogFile({self.path!r})"

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.name}"

    @property
    def is_open(self) -> bool:
        return self._handle is not None

    @property
    def is_pinned(self) -> bool:
        return self._pin_count > 0

    def handle(self, *, create: bool = False) -> File:
        """The open file. Use it at once and do not keep it: the next file opened may close this one."""
        open_files = self.directory.storage.open_files
        if self._handle is None:
            self._handle = open_files.open(self, create=create)
        else:
            open_files.touch(self)
        return self._handle

    def pin(self) -> File:
        """The open file, to keep until `unpin`."""
        handle = self.handle()
        self._pin_count += 1
        return handle

    def unpin(self) -> None:
        self._pin_count -= 1
        if self._pin_count == 0 and self._handle is not None and not self.directory.storage.open_files.holds(self):
            self._close_handle()

    def close(self) -> None:
        """Close it now or, if it is pinned, with the last pin."""
        if self._handle is not None:
            self.directory.storage.open_files.forget(self)
            if self._pin_count == 0:
                self._close_handle()

    def _close_handle(self) -> None:
        assert self._handle is not None
        handle, self._handle = self._handle, None
        handle.close()

    def rename(self, name: str) -> None:
        if not self._pin_count:
            self.close()  # Windows does not rename open files
        disk = self.directory.storage.disk
        disk.rename(self.path, self.directory.file(name))
        self.name = name

    def exists(self) -> bool:
        return self._handle is not None or self.directory.storage.disk.exists(self.path)

    def evict(self) -> bool:
        """Close it unless it is pinned; only `OpenFiles` calls this."""
        if self._pin_count:
            return False
        self._close_handle()
        return True


class OpenFiles:
    """Which files are open, in the order of their last use."""

    __slots__ = ("_disk", "_files", "limit")

    def __init__(self, disk: Disk, limit: int = DEFAULT_OPEN_FILES_MAX) -> None:
        self._disk = disk
        self._files: OrderedDict[LogFile, None] = OrderedDict()
        self.limit = limit

    def __len__(self) -> int:
        return len(self._files)

    def open(self, file: LogFile, *, create: bool) -> File:
        if len(self._files) >= self.limit:
            self._make_room()
        try:
            handle = self._disk.open(file.path, create=create)
        except OSError as error:
            # The process may have fewer files left than we were told.
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._make_room():
                raise
            handle = self._disk.open(file.path, create=create)
        self._files[file] = None
        return handle

    def _make_room(self) -> bool:
        for candidate in self._files:
            if candidate.evict():
                del self._files[candidate]
                return True
        return False

    def touch(self, file: LogFile) -> None:
        if file in self._files:
            self._files.move_to_end(file)

    def holds(self, file: LogFile) -> bool:
        return file in self._files

    def forget(self, file: LogFile) -> None:
        self._files.pop(file, None)

    def close_all(self) -> None:
        for file in list(self._files):
            file.close()


class LogStorage:
    """The state that the partitions of one log directory share.

    Several directories may share `open_files`. `jitter` picks a number below its argument, for `segment.jitter.ms`.
    """

    __slots__ = ("_deleted", "disk", "failure", "jitter", "open_files", "rolled", "when_failed")

    def __init__(
        self,
        disk: Disk,
        *,
        open_files: OpenFiles | None = None,
        jitter: Callable[[int], int] = lambda _limit: 0,
    ) -> None:
        self.disk = disk
        self.open_files = OpenFiles(disk) if open_files is None else open_files
        self.jitter = jitter
        self.failure: OSError | None = None
        self.when_failed: Callable[[StorageError], None] = lambda _error: None
        """Told of the first failure, in the thread that has found it."""
        self.rolled: dict[Partition, None] = {}
        """Partitions with closed segments that no flush has reached yet, oldest first."""
        self._deleted: deque[tuple[int, str]] = deque()

    def check(self) -> None:
        """Refuse to go on after a failure: memory may be ahead of the disk, only a restart puts them in order."""
        if self.failure is not None:
            raise StorageError(f"the log directory is offline: {self.failure}") from self.failure

    def fail(self, error: OSError, what: str) -> StorageError:
        """Take the directory offline; gives the exception to raise."""
        failed = StorageError(f"{what}: {error}")
        if self.failure is None:
            self.failure = error
            self.when_failed(failed)
        return failed

    def delete_later(self, path: str, due_at_ms: int) -> None:
        self._deleted.append((due_at_ms, path))

    def due_deletions(self, now_ms: int) -> list[str]:
        """Files whose time has come. Removing a large one takes milliseconds: a task for a thread."""
        due: list[str] = []
        rest: deque[tuple[int, str]] = deque()
        for due_at_ms, path in self._deleted:
            if due_at_ms <= now_ms:
                due.append(path)
            else:
                rest.append((due_at_ms, path))
        self._deleted = rest
        return due
