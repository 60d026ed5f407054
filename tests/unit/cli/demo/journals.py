"""Journals of workloads as tests want them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.cli.demo.directory import DemoDirectory


def ground_in(path: Path) -> DemoDirectory:
    directory = DemoDirectory(path / "demo")
    directory.prepare()
    return directory


def write(directory: DemoDirectory, name: str, entries: Iterable[dict[str, Any]]) -> None:
    lines = (json.dumps({"at_ms": at, **entry}) for at, entry in enumerate(entries, 1))
    directory.journal_of(name).write_text("".join(f"{line}\n" for line in lines))


def ranges(what: str, *found: tuple[str, int, int, int]) -> dict[str, Any]:
    return {"what": what, "ranges": found}


def balanced(directory: DemoDirectory) -> None:
    """Four groups that did all that they had to: ten orders, ten payments of which one is poison, four lines."""
    poison = {"what": "poison", "topic": "payments", "partition": 0, "offset": 3}
    written = ranges("written", ("orders", 0, 0, 9), ("payments", 0, 0, 9), ("lines", 0, 0, 3))
    write(directory, "producers", [written, poison])
    write(directory, "billing-1", [ranges("committed", ("orders", 0, 0, 4))])
    write(directory, "billing-2", [ranges("committed", ("orders", 0, 5, 9))])
    write(directory, "audit", [ranges("committed", ("orders", 0, 0, 9))])
    write(directory, "risk-checks", [ranges("accepted", ("payments", 0, 0, 2), ("payments", 0, 4, 9))])
    write(directory, "word-totals-1", [ranges("committed", ("lines", 0, 0, 3))])
