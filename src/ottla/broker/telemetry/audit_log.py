"""The audit log: who has logged in, who was refused something, and who has changed what. One JSON object in a line.

Lines are written in the background, those that have come meanwhile together. If they come faster than the disk takes
them, `audit.lost` says how many are missing. A file that has grown large becomes `audit.jsonl.1`, and the oldest goes.
Everything beyond ASCII is escaped, so that no name can do harm to a terminal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any, Final

from ottla.broker.config.node_config import NodeConfig
from ottla.log.disk import Disk

__all__ = ["AuditLog", "open_audit_log"]

log = logging.getLogger(__name__)

_NAME: Final = "audit.jsonl"
_NONE: Final = "none"
Offload = Callable[[Callable[[], None], Callable[[], None]], Any]
"""Runs the first in the background, and the second when it is done."""
LINES_MAX: Final = 10_000
"""Lines that wait for the disk."""


def open_audit_log(
    config: NodeConfig, disk: Disk, offload: Offload, wall_ms: Callable[[], int], *, is_guarded: bool
) -> AuditLog | None:
    """The audit log that the settings ask for. If they do not say, there is one on a node with anything to guard."""
    path = config["ottla.audit.file"]
    if path == _NONE or not (path or is_guarded):
        return None
    return AuditLog(
        disk,
        path or f"{config.metadata_dir}/{_NAME}",
        offload,
        wall_ms,
        max_bytes=config["ottla.audit.file.max.bytes"],
        max_files=config["ottla.audit.files"],
    )


class AuditLog:
    def __init__(
        self,
        disk: Disk,
        path: str,
        offload: Offload,
        wall_ms: Callable[[], int],
        *,
        max_bytes: int,
        max_files: int,
    ) -> None:
        self.path = path
        self._disk = disk
        self._offload = offload
        self._wall_ms = wall_ms
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._lines: list[str] = []
        self._lost_count = 0
        self._is_writing = False
        self._failure = ""

    def add(self, event: str, fields: Mapping[str, object]) -> None:
        """Something has happened."""
        if len(self._lines) >= LINES_MAX:
            self._lost_count += 1
            return
        self._lines.append(self._line(event, fields))
        if not self._is_writing:
            self._begin()

    def _line(self, event: str, fields: Mapping[str, object]) -> str:
        at = datetime.fromtimestamp(self._wall_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"at": at.replace("+00:00", "Z"), "event": event, **fields}) + "\n"

    def _begin(self) -> None:
        data = self._take()
        self._is_writing = True
        self._offload(partial(self._write, data), self._written)

    def _take(self) -> bytes:
        """What waits, in one piece."""
        lines, self._lines = self._lines, []
        if self._lost_count:
            lines.append(self._line("audit.lost", {"count": self._lost_count}))
            self._lost_count = 0
        return "".join(lines).encode()

    def _written(self) -> None:
        self._is_writing = False
        if self._failure:
            log.error("cannot write %s, lines are missing: %s", self.path, self._failure)
        if self._lines:
            self._begin()

    def close(self) -> None:
        """Write what is left."""
        if self._lines:
            self._write(self._take())

    # --- in a thread --------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        try:
            size = self._append(data, len(data))
            if size >= self._max_bytes:
                self._rotate()
            self._failure = ""
        except OSError as error:
            self._failure = str(error)

    def _append(self, data: bytes, length: int) -> int:
        """The size of the file with it."""
        file = self._disk.open(self.path, create=True)
        try:
            size = file.size()
            file.write([data], size)
        finally:
            file.close()
        return size + length

    def _rotate(self) -> None:
        names = [self.path, *(f"{self.path}.{number}" for number in range(1, self._max_files))]
        for newer, older in reversed(list(pairwise(names))):
            if self._disk.exists(newer):
                self._disk.rename(newer, older)
        if len(names) == 1:
            self._disk.unlink(self.path)
