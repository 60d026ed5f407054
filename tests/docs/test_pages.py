"""The list of pages has every page."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_listed_once() -> None:
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \|", (DOCS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}

    assert all(text == place for text, place in listed)
    assert sorted(place for _, place in listed) == sorted(pages)
