"""What an area of the cluster adds to the facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["KEPT_ROWS", "Part", "table"]

KEPT_ROWS: Final = 2_000
"""Rows of a table that go into the facts, and into the file behind its link."""


@dataclass(slots=True)
class Part:
    """What one area adds to the facts. `numbers` stand behind its light, `sentence` says them."""

    sentence: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    has_rows: bool = False


def table(rows: list[dict[str, Any]], total: int, order: str) -> dict[str, Any]:
    """A table of the facts: its first rows, how many there are, and what comes first."""
    return {"total": total, "order": order, "rows": rows[:KEPT_ROWS]}
