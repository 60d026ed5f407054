"""Files to read: of this machine, or of any file system of pyarrow or fsspec.

A path with a scheme (`s3://bucket/kafka-logs`) is opened with pyarrow, or with fsspec, if it is installed and pyarrow
does not know the scheme. All others are files of this machine. Nothing is ever written or locked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.spark.errors import OttlaSparkError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["ArrowStorage", "Entry", "LocalStorage", "SourceFile", "Storage", "absolute", "is_remote", "storage_of"]

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
    system, inner = _file_system(path)
    return ArrowStorage(system), inner.rstrip("/")


def _file_system(uri: str) -> tuple[FileSystem, str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, inner = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return _fsspec(uri, str(error).splitlines()[0])
    return system, str(inner)


def _fsspec(uri: str, why: str) -> tuple[FileSystem, str]:
    from pyarrow import fs

    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError:
        text = f"option path: {uri} is on a file system that pyarrow does not know ({why}) and fsspec is not installed"
        raise OttlaSparkError(text) from None
    try:
        system, inner = url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise OttlaSparkError(f"option path: {uri}: {error}") from None
    system.invalidate_cache()  # it may have cached an older listing
    return fs.PyFileSystem(fs.FSSpecHandler(system)), str(inner)


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
    """A file system of pyarrow, or of fsspec through it."""

    def __init__(self, system: FileSystem) -> None:
        self._system = system

    def list(self, path: str) -> list[Entry]:
        from pyarrow import fs

        with _named(path):
            infos = self._system.get_file_info(fs.FileSelector(path))
        return [Entry(info.base_name, info.type == fs.FileType.Directory, info.size or 0) for info in infos]

    def open(self, path: str) -> SourceFile:
        with _named(path):
            return _ArrowFile(path, self._system.open_input_file(path))


class _ArrowFile:
    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def read(self, size: int, position: int) -> bytes:
        rest = self.size() - position
        if rest <= 0:
            return b""
        with _named(self._path):
            return bytes(self._file.read_at(min(size, rest), position))

    def fill(self, buffer: memoryview, position: int) -> int:
        data = self.read(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def size(self) -> int:
        return int(self._file.size())

    def close(self) -> None:
        self._file.close()


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Turns errors of remote file systems into those of local ones."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OSError(f"{path}: {str(error).splitlines()[0]}") from error
