"""What each workload really did, written down while it did it: one JSON object to a line, one file for each process.

A line is in the file before the next step is taken, so that what a killed process did until then is known, too.
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
    """What was written down, or only some of it. The last line of a killed process may be cut short."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry: Entry = json.loads(line)
        except ValueError:
            continue
        if not what or entry["what"] in what:
            yield entry
