"""The journals of the workloads, which record what each really did: one file per process, one JSON object per line.

A line is written before the next step, so that the journal of a killed process is complete, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Entry", "Journal", "entries", "now_ms"]

Entry = dict[str, Any]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Journal:
    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self._file = path.open("a", buffering=1, encoding="utf-8")

    def note(self, what: str, **facts: object) -> None:
        self._file.write(json.dumps({"at_ms": now_ms(), "what": what, **facts}) + "\n")

    def close(self) -> None:
        self._file.close()


def entries(path: Path, *what: str) -> Iterator[Entry]:
    """The entries of a journal, of all kinds or only some. The last line of a killed process may be truncated."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry: Entry = json.loads(line)
        except ValueError:
            continue
        if not what or entry["what"] in what:
            yield entry
