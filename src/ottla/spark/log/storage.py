"""Files to read: of this machine, or of any file system of pyarrow or fsspec.

A path with a scheme (`s3://bucket/kafka-logs`) is opened with pyarrow, or with fsspec, if it is installed and pyarrow
does not know the scheme. All others are files of this machine. Nothing is ever written or locked.

Reading elsewhere is a request to an object store, and takes much longer than its bytes. So a small read takes the block
behind it along: whoever walks along a file asks once for each MiB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.spark.errors import OttlaSparkError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = [
    "ArrowStorage",
    "Entry",
    "FsspecStorage",
    "LocalStorage",
    "SourceFile",
    "Storage",
    "absolute",
    "is_remote",
    "storage_of",
]

BLOCK_BYTES: Final = 1 << 20

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_SCHEME: Final = "file://"
_READ_ONLY: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Entry(NamedTuple):
    name: str
    is_directory: bool
    size_bytes: int


class SourceFile(Protocol):
    """An open file. It has no position of its own."""

    def read(self, size: int, position: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def fill(self, buffer: memoryview, position: int) -> int:
        """Read into a buffer; returns how many bytes were read, fewer than its size only at the end of the file."""

    def size(self) -> int: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """A file system with log directories. A missing file raises FileNotFoundError, other failures OSError."""

    def list(self, path: str) -> list[Entry]: ...

    def open(self, path: str) -> SourceFile: ...


def is_remote(path: str) -> bool:
    return _SCHEME.match(path) is not None and not path.startswith(_FILE_SCHEME)


def absolute(path: str) -> str:
    """The absolute path, for processes with other working directories."""
    return path.rstrip("/") if is_remote(path) else os.path.abspath(path.removeprefix(_FILE_SCHEME))


def storage_of(path: str) -> tuple[Storage, str]:
    """The storage of a path, and the path within it."""
    if not is_remote(path):
        return LocalStorage(), absolute(path)
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, inner = fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return _fsspec(path, str(error).splitlines()[0])
    return ArrowStorage(system), str(inner).rstrip("/")


def _fsspec(uri: str, why: str) -> tuple[Storage, str]:
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError:
        text = (
            f"option path: {uri} is on a file system that pyarrow does not support ({why}) and fsspec is not installed"
        )
        raise OttlaSparkError(text) from None
    try:
        system, inner = url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise OttlaSparkError(f"option path: {uri}: {error}") from None
    system.invalidate_cache()  # it may have cached an older listing
    return FsspecStorage(system), str(inner).rstrip("/")


# --- this machine -----------------------------------------------------------------------------------------------------


class LocalStorage:
    def list(self, path: str) -> list[Entry]:
        found: list[Entry] = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    found.append(Entry(entry.name, entry.is_dir(), entry.stat().st_size))
                except FileNotFoundError:  # a running broker removes files while we look
                    continue
        return found

    def open(self, path: str) -> SourceFile:
        return _LocalFile(os.open(path, _READ_ONLY))


class _LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, position: int) -> bytes:
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.fill(memoryview(buffer), position)])

    def fill(self, buffer: memoryview, position: int) -> int:
        done = 0
        while done < len(buffer):  # a read may be short; only an empty one means the end of the file
            count = os.preadv(self._descriptor, [buffer[done:]], position + done)
            if count == 0:
                break
            done += count
        return done

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


# --- elsewhere --------------------------------------------------------------------------------------------------------


class ArrowStorage:
    """A file system of pyarrow."""

    def __init__(self, system: FileSystem) -> None:
        self._system = system

    def list(self, path: str) -> list[Entry]:
        from pyarrow import fs

        with _named(path):
            infos = self._system.get_file_info(fs.FileSelector(path))
        return [Entry(info.base_name, info.type == fs.FileType.Directory, info.size or 0) for info in infos]

    def open(self, path: str) -> SourceFile:
        with _named(path):
            file = self._system.open_input_file(path)
            return _RemoteFile(path, file.size(), lambda start, end: file.read_at(end - start, start), file.close)


class FsspecStorage:
    """A file system of fsspec. Ranges are read as they are: its file objects read ahead, by 50 MiB on S3."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def list(self, path: str) -> list[Entry]:
        with _named(path):
            found = self._system.ls(path, detail=True)
        inside = [each for each in found if each["name"].strip("/") != path.strip("/")]
        if len(found) == 1 and not inside and found[0]["type"] == "file":
            raise NotADirectoryError(path)
        return [
            Entry(each["name"].rstrip("/").rpartition("/")[2], each["type"] == "directory", each["size"] or 0)
            for each in inside
        ]

    def open(self, path: str) -> SourceFile:
        with _named(path):
            info = self._system.info(path)
        if info["type"] == "directory":
            raise FileNotFoundError(path)
        return _RemoteFile(path, info["size"], lambda start, end: self._system.cat_file(path, start=start, end=end))


class _RemoteFile:
    """Keeps the block that was read last. Its size is that when it was opened."""

    def __init__(
        self, path: str, size: int, fetch: Callable[[int, int], bytes], close: Callable[[], None] = lambda: None
    ) -> None:
        self._path = path
        self._size = size
        self._fetch = fetch
        self._start = 0
        self._block = b""
        self.close = close

    def read(self, size: int, position: int) -> bytes:
        end = min(position + size, self._size)
        if position >= end:
            return b""
        if not self._start <= position < end <= self._start + len(self._block):
            with _named(self._path):
                self._block = bytes(self._fetch(position, min(max(end, position + BLOCK_BYTES), self._size)))
            self._start = position
        return self._block[position - self._start : end - self._start]

    def fill(self, buffer: memoryview, position: int) -> int:
        data = self.read(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def size(self) -> int:
        return self._size


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Turns errors of remote file systems into those of local ones."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except Exception as error:  # each file system of fsspec has errors of its own
        reason = str(error).splitlines() or [type(error).__name__]
        raise OSError(f"{path}: {reason[0]}") from error
