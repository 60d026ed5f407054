"""The part of an area in the facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["KEPT_ROWS", "Part", "table"]

KEPT_ROWS: Final = 2_000
"""How many rows of a table go into the facts and into its CSV file."""


@dataclass(slots=True)
class Part:
    """The part of one area. `numbers` explain its light, and `sentence` says them in words."""

    sentence: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    has_rows: bool = False


def table(rows: list[dict[str, Any]], total: int, order: str) -> dict[str, Any]:
    """A table of the facts: its first rows, their total number, and their order."""
    return {"total": total, "order": order, "rows": rows[:KEPT_ROWS]}
