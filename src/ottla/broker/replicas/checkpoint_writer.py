"""Checkpoints of a log directory, written in a thread, by one writer at a time.

Each file is replaced by way of a draft beside it, so two writers of one file would take each other's draft away, and
the older content could come last. So a directory has one writer. While it writes, the contents that are asked for wait;
a newer content of a file takes the place of one that waits. When it is done it takes all that waits, in the order in
which it was last asked for: a file that relies on another is asked for after it, and is never on the disk before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.loop.offload import Job
from ottla.log.directory import LogDirectory
from ottla.log.disk import replace_file
from ottla.log.errors import StorageError

__all__ = ["CheckpointWriter"]


class CheckpointWriter:
    """The one writer of the checkpoints in a log directory. All of it belongs to the loop."""

    def __init__(
        self,
        directory: LogDirectory,
        offload: Callable[[Callable[[], None], Callable[[], None]], Job],
        failed: Callable[[LogDirectory, StorageError], None],
    ) -> None:
        self._directory = directory
        self._offload = offload
        self._failed = failed
        self._newest: dict[str, bytes] = {}
        self._waiting: dict[str, bytes] = {}
        self._is_writing = False

    def write(self, checkpoints: Mapping[str, bytes]) -> None:
        """Write checkpoints by name, one after the other, without those that would stay the same."""
        for name, content in checkpoints.items():
            if name in self._waiting or self._newest.get(name) != content:
                self._waiting.pop(name, None)
                self._waiting[name] = self._newest[name] = content
        self._begin()

    def _begin(self) -> None:
        if self._is_writing or not self._waiting or self._directory.is_offline:
            return
        self._is_writing = True
        contents, self._waiting = self._waiting, {}
        failures: list[tuple[OSError, str]] = []

        def work() -> None:
            for name, content in contents.items():
                path = f"{self._directory.path}/{name}"
                try:
                    replace_file(self._directory.disk, path, content)
                except OSError as error:
                    failures.append((error, f"writing {path}"))
                    return

        def then() -> None:
            self._is_writing = False
            for error, what in failures:
                self._failed(self._directory, self._directory.storage.fail(error, what))
            self._begin()

        self._offload(work, then)
