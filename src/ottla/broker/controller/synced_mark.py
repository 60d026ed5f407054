"""synced-offset: the recovery point of the metadata log, below which it is on the disk for good, in a file beside it.

A power cut may lose any page that was not synced. So damage at the mark or behind it is the torn end of the log, which
was acknowledged to nobody; below the mark it is real damage. The mark is written after each sync, and not synced
itself: after a power cut it may be too low, never too high. Apache Kafka ignores the file.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ottla.log.disk import Disk, read_all

__all__ = ["SyncedMark", "read_mark"]

FILE_NAME: Final = "synced-offset"
_DIGITS: Final = 20


def read_mark(disk: Disk, directory: str) -> int | None:
    """The mark in the directory of a metadata log; None if there is none, as after other software."""
    try:
        return int(read_all(disk, f"{directory}/{FILE_NAME}"))
    except (FileNotFoundError, ValueError):
        return None


class SyncedMark:
    def __init__(self, disk: Disk, directory: str, offset: int) -> None:
        """Put it at the end of a log that is synced."""
        found = read_mark(disk, directory)
        self._file = disk.open(f"{directory}/{FILE_NAME}", create=True)
        self._offset = offset
        if found != offset:
            self.reset(offset)
        if found is None:
            disk.sync_directory(directory)

    def raise_to(self, offset: int) -> None:
        """The log is synced below an offset. If that cannot be written, the mark is too low, which does no harm."""
        if offset > self._offset:
            with suppress(OSError):
                self._write(offset)

    def reset(self, offset: int) -> None:
        """The log was cut there, or replaced by a snapshot that ends there: the mark must not stay behind it."""
        self._write(offset)
        self._file.sync()

    def _write(self, offset: int) -> None:
        self._file.write([f"{offset:0{_DIGITS}}\n".encode()], 0)
        self._offset = offset

    def close(self) -> None:
        self._file.close()
