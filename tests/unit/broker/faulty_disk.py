"""A virtual disk on which chosen operations fail: it is full just then, or a sector is bad."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from fnmatch import fnmatch

from ottla.log.disk import Buffer
from ottla.testing.disk import VirtualDisk, VirtualFile


class FaultyDisk(VirtualDisk):
    """Fails as it is told to, until it is mended."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: list[tuple[str, str, int]] = []
        self.failed: list[str] = []
        """The operations that have failed."""

    def fill_at(self, pattern: str) -> None:
        """There is no room for new files of a name, and for half of what is written to those that exist."""
        self._faults += [("create", pattern, errno.ENOSPC), ("write", pattern, errno.ENOSPC)]

    def break_at(self, what: str, pattern: str) -> None:
        """An operation on files of a name ends with an error of the device."""
        self._faults.append((what, pattern, errno.EIO))

    def mend(self) -> None:
        self._faults.clear()

    def check(self, what: str, path: str) -> None:
        for operation, pattern, number in self._faults:
            if operation == what and fnmatch(path, pattern):
                self.failed.append(f"{what} {path}")
                raise OSError(number, os.strerror(number), path)

    def count(self, what: str, path: str) -> None:
        if what != "write":
            self.check(what, path)
        super().count(what, path)

    def open(self, path: str, *, create: bool = False) -> VirtualFile:
        return _FaultyFile(self, super().open(path, create=create), path)


class _FaultyFile(VirtualFile):
    __slots__ = ("_faulty",)

    def __init__(self, disk: FaultyDisk, opened: VirtualFile, path: str) -> None:
        super().__init__(disk, opened._node, path)
        self._faulty = disk

    def read(self, size: int, position: int) -> bytes:
        self._faulty.check("read", self.path)
        return super().read(size, position)

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        try:
            self._faulty.check("write", self.path)
        except OSError:
            data = b"".join(buffers)
            super().write([data[: len(data) // 2]], position)
            raise
        super().write(buffers, position)
