"""`.lock`: one process to a log directory.

It is a POSIX record lock, because Apache Kafka's is one: a BSD lock would not be seen by it. Such a lock belongs to the
process, so it says nothing about a second user in the same process; `DirectoryLock` keeps a list for that.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

__all__ = ["LOCK_FILE", "DirectoryLock", "LockedError"]

LOCK_FILE: Final = ".lock"
_held: set[str] = set()


class LockedError(Exception):
    """Another broker uses the directory."""


class DirectoryLock:
    """Holds the lock from its making until `release`."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, directory: str) -> None:
        self._path = os.path.realpath(os.path.join(directory, LOCK_FILE))
        if self._path in _held:
            raise LockedError(f"{directory} is already in use by this process")
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError:
            os.close(self._descriptor)
            raise LockedError(
                f"{directory} is in use by another process (it holds {LOCK_FILE}); stop it, or choose another directory"
            ) from None
        _held.add(self._path)

    def release(self, *, remove: bool) -> None:
        """Let go; `remove` after a clean stop, as Apache Kafka does."""
        if self._path not in _held:
            return
        _held.discard(self._path)
        if remove:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        return
    import fcntl

    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
