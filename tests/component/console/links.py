"""Follows the links of a page to those pages that the console has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from ottla.console.pages import PAGES
from tests.component.console.served import Browser

KNOWN = [re.compile(re.sub(r"\{[^}]*\}", "[^/]+", page.path) + r"(\.json)?(\?.*)?") for page in PAGES]


def own_links(browser: Browser, path: str) -> Iterator[str]:
    for href in dict.fromkeys(browser.page(path).links):
        if any(each.fullmatch(href) for each in KNOWN):
            yield unescape(href)


def check_links(browser: Browser, path: str) -> None:
    """Every link to a page that exists is answered."""
    found = list(own_links(browser, path))
    assert found, f"{path} has no links"
    for each in found:
        browser.page(each)
