"""Pages as JSON: the page itself, keys in camelCase."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ottla.explain.page import CatalogueSection, Page


def render(page: Page) -> str:
    """One page as an object."""
    return _pretty(page)


def render_all(pages: Sequence[Page]) -> str:
    """One page as an object, several as an array."""
    return _pretty(pages[0]) if len(pages) == 1 else _pretty(list(pages))


def catalogue(sections: Sequence[CatalogueSection]) -> str:
    return _pretty(list(sections))


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
