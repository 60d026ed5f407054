"""Access to the disk.

Everything under `ottla.log` reads and writes through `Disk` and the `File`s it opens. `OsDisk` is the real one. The
simulation runs the same code on a disk that tears writes, loses what was not synced, and gets full or slow. So the
interface is no larger than what the log needs, and each call is one operation that a crash can come before or after.
Failures are `OSError`s.

What may be relied upon, and no more:

- what `write` has taken survives the death of the process, in the order of the calls;
- it survives the death of the machine only after `sync` of the file; a name (new, renamed or removed) only after
  `sync_directory` of its directory;
- `rename` replaces its target in one step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from ottla.log.lock import DirectoryLock

__all__ = [
    "Buffer",
    "Disk",
    "DiskEntry",
    "File",
    "Lock",
    "OsDisk",
    "OsFile",
    "ReadableFile",
    "read_all",
    "replace_file",
    "write_file",
]

Buffer = bytes | bytearray | memoryview

# Linux takes 1,024 pieces in one call.
PIECES_MAX: Final = 1024
_FILE_MODE: Final = 0o600
"""Records, users and settings are nobody's business but the broker's."""
_BINARY: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class DiskEntry(NamedTuple):
    """One entry of a directory."""

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int


class ReadableFile(Protocol):
    """An open file, read at positions that the caller names: it has no position of its own."""

    def read(self, size: int, position: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""


class File(ReadableFile, Protocol):
    """An open file, read and written."""

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """All of the buffers, one after the other. After a failure any part of them may have been written."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Returns when the content will survive a power cut. Never to be called again after it failed."""

    def close(self) -> None: ...

    def fileno(self) -> int:
        """The number by which the operating system knows the file, for sendfile."""


class Lock(Protocol):
    """The lock of a directory."""

    def release(self, *, remove: bool) -> None:
        """Let go; `remove` after a clean stop."""


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. FileNotFoundError if it does not exist and shall not be created."""

    def list_directory(self, path: str) -> list[DiskEntry]:
        """What a directory holds, in no order."""

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int: ...

    def rename(self, source: str, target: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def make_directory(self, path: str) -> None:
        """No error if it exists."""

    def remove_directory(self, path: str) -> None:
        """It must be empty."""

    def sync_directory(self, path: str) -> None: ...

    def set_modified(self, path: str, modified_ms: int) -> None: ...

    def make_read_only(self, path: str) -> None:
        """Guard a file against changes by mistake. The log does not rely on it."""

    def lock_directory(self, path: str) -> Lock:
        """Take the lock of a log directory. LockedError if another broker has it."""


_CLOSED: Final = -1


class OsFile:
    """A file of the operating system."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, position: int) -> bytes:
        data = _pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        # A signal or the end of the file: only an empty read tells the second.
        while (size := size - len(data)) > 0:
            position += len(data)
            data = _pread(self._descriptor, size, position)
            if not data:
                break
            parts.append(data)
        return b"".join(parts)

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        for start in range(0, len(buffers), PIECES_MAX):
            pieces = buffers if len(buffers) <= PIECES_MAX else buffers[start : start + PIECES_MAX]
            expected = sum(map(len, pieces))
            written = _pwritev(self._descriptor, pieces, position)
            if written < expected:
                self._write_rest(memoryview(b"".join(pieces))[written:], position + written)
            position += expected

    def _write_rest(self, rest: memoryview, position: int) -> None:
        # A full disk takes a part and says why only at the next call.
        while rest:
            written = _pwritev(self._descriptor, [rest], position)
            rest, position = rest[written:], position + written

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        os.close(descriptor)

    def __del__(self) -> None:
        """Close a file that is no longer referenced: the number of open files is limited."""
        if self._descriptor != _CLOSED:
            os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor


class OsDisk:
    """The operating system's file systems. Without `durable`, nothing is synced: for data that need not last."""

    __slots__ = ("_durable",)

    def __init__(self, *, durable: bool = True) -> None:
        self._durable = durable

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | _BINARY | (os.O_CREAT if create else 0)
        descriptor = os.open(path, flags, _FILE_MODE)
        return OsFile(descriptor) if self._durable else _UnsyncedFile(descriptor)

    def list_directory(self, path: str) -> list[DiskEntry]:
        with os.scandir(path) as entries:
            return [found for entry in entries if (found := _disk_entry(entry)) is not None]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def lock_directory(self, path: str) -> DirectoryLock:
        return DirectoryLock(path)

    def sync_directory(self, path: str) -> None:
        if not self._durable or os.name == "nt":  # Windows has no such thing
            return
        descriptor = os.open(path, os.O_RDONLY | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set_modified(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def make_read_only(self, path: str) -> None:
        os.chmod(path, 0o400)


class _UnsyncedFile(OsFile):
    __slots__ = ()

    def sync(self) -> None:
        pass


def _disk_entry(entry: os.DirEntry[str]) -> DiskEntry | None:
    """None if it was deleted meanwhile, or is a link to nothing."""
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    return DiskEntry(entry.name, entry.is_dir(), status.st_size, status.st_mtime_ns // 1_000_000)


def _pread_by_seeking(descriptor: int, size: int, position: int) -> bytes:
    os.lseek(descriptor, position, os.SEEK_SET)
    return os.read(descriptor, size)


def _pwritev_by_seeking(descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
    os.lseek(descriptor, position, os.SEEK_SET)
    return os.write(descriptor, b"".join(buffers))


# Windows lacks both; one loop owns all files, so seeking first is as good.
_pread = getattr(os, "pread", _pread_by_seeking)
_pwritev = getattr(os, "pwritev", _pwritev_by_seeking)


def read_all(disk: Disk, path: str) -> bytes:
    """The whole of a small file."""
    file = disk.open(path)
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()


def write_file(disk: Disk, path: str, data: Buffer, *, sync: bool) -> None:
    """Write a file anew, in place: a crash may leave any part of it. For files that carry a checksum."""
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.write([data], 0)
        if sync:
            file.sync()
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: Buffer) -> None:
    """Put a file in the place of another in one step: whatever happens, one of them is there, whole."""
    draft = f"{path}.tmp"
    write_file(disk, draft, data, sync=True)
    disk.rename(draft, path)
    disk.sync_directory(os.path.dirname(path))
