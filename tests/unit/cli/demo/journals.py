"""Journals of workloads as tests want them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.cli.demo.ground import Ground


def ground_in(path: Path) -> Ground:
    ground = Ground(path / "demo")
    ground.prepare()
    return ground


def write(ground: Ground, name: str, entries: Iterable[dict[str, Any]]) -> None:
    lines = (json.dumps({"at_ms": at, **entry}) for at, entry in enumerate(entries, 1))
    ground.journal_of(name).write_text("".join(f"{line}\n" for line in lines))


def ranges(what: str, *found: tuple[str, int, int, int]) -> dict[str, Any]:
    return {"what": what, "ranges": found}


def balanced(ground: Ground) -> None:
    """Four groups that did all that they had to: ten orders, ten payments of which one is poison, four lines."""
    poison = {"what": "poison", "topic": "payments", "partition": 0, "offset": 3}
    written = ranges("written", ("orders", 0, 0, 9), ("payments", 0, 0, 9), ("lines", 0, 0, 3))
    write(ground, "producers", [written, poison])
    write(ground, "billing-1", [ranges("committed", ("orders", 0, 0, 4))])
    write(ground, "billing-2", [ranges("committed", ("orders", 0, 5, 9))])
    write(ground, "audit", [ranges("committed", ("orders", 0, 0, 9))])
    write(ground, "risk-checks", [ranges("accepted", ("payments", 0, 0, 2), ("payments", 0, 4, 9))])
    write(ground, "word-totals-1", [ranges("committed", ("lines", 0, 0, 3))])
