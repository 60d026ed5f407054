"""The table of docs/reference/differences.md."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
COLUMNS = ["id", "about", "Apache Kafka 4.3.1", "ottla", "why", "as in Apache Kafka with"]


def rows() -> list[dict[str, str]]:
    """The lines of the first table."""
    lines = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == COLUMNS
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells[2:]]
