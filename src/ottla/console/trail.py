"""The way to a page: its path says which pages are above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.console.addresses import href
from ottla.console.pages import PAGES

__all__ = ["pages_above"]

PATHS: Final = frozenset(each.path for each in PAGES)


def pages_above(path: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Titles and addresses of the pages with whose paths this one begins: `/groups/{group}/offsets` is below two."""
    steps = path.strip("/").split("/")
    parts = [names.get(step.strip("{}"), step) for step in steps]
    for count in range(1, len(steps)):
        if f"/{'/'.join(steps[:count])}" in PATHS:
            is_name = steps[count - 1].startswith("{")
            yield parts[count - 1] if is_name else parts[count - 1].capitalize(), href(*parts[:count])
