"""The index has every page once, under its kind; every link between pages leads to a page and a heading that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KINDS = {"Tutorials": "tutorial", "How-to guides": "how-to", "Reference": "reference", "Explanation": "explanation"}
PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "GAPS")] + sorted(DOCS.rglob("*.md"))


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^(```+).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        if "://" not in target and not (place.exists() and (not anchor or anchor in anchors(place))):
            found.append(target)
    return found


def test_every_page_is_listed_once_under_its_kind() -> None:
    sections = re.split(r"^## ", prose(DOCS / "README.md"), flags=re.MULTILINE)[1:]
    listed = {
        section.partition("\n")[0]: re.findall(r"^\| \[.+?\]\((.+?)\)", section, re.MULTILINE) for section in sections
    }
    pages = {
        title: [path.relative_to(DOCS).as_posix() for path in (DOCS / kind).glob("*.md")]
        for title, kind in KINDS.items()
    }

    assert {title: sorted(places) for title, places in listed.items()} == {
        title: sorted(places) for title, places in pages.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One & two\n\n[a](page.md#one--two) [b](#three) [c](other.md) [d](https://example.org/x#y)\n")
    assert broken(page) == ["#three", "other.md"]


def test_pictures_are_small_and_shown() -> None:
    pictures = sorted((DOCS / "images").iterdir())
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [picture.name for picture in pictures if picture.stat().st_size > 300_000] == []
    assert [picture.name for picture in pictures if f"images/{picture.name}" not in texts] == []
