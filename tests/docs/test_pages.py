"""The list of pages has every page, and the list of packages every package."""

from __future__ import annotations

import re
from pathlib import Path

import ottla

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGES = Path(ottla.__file__).parent


def test_every_page_is_listed_once() -> None:
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \|", (DOCS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}

    assert all(text == place for text, place in listed)
    assert sorted(place for _, place in listed) == sorted(pages)


def test_contributors_are_told_of_every_package() -> None:
    told = set(
        re.findall(r"^\| `ottla\.([\w.]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    packages = {path.parent for path in PACKAGES.glob("*/__init__.py")} - {PACKAGES / "core"}
    packages |= {path.parent for path in (PACKAGES / "core").glob("*/__init__.py")}

    assert told == {".".join(path.relative_to(PACKAGES).parts) for path in packages}
