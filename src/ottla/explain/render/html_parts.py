"""The parts of all HTML pages: links, badges, sections, tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.page import Page, PageRef, Prose

SECTIONS = {"api": "APIs", "record": "Records", "header": "Headers", "error": "Errors"}
"""Sections of the site's list; their anchors are the keys in plural."""


class PageLinks(NamedTuple):
    """How a page links to other pages, and the prefix of its ids."""

    link: Callable[[PageRef], str | None]
    """The address of another page; None if there is none."""
    home: str | None = None
    """The address of the list of all pages."""
    prefix: str = ""
    """The prefix of ids, if several pages share a document."""


def prose(text: Prose, links: PageLinks) -> Markup:
    """A text with its links."""
    return joined(piece.text if piece.target is None else named(piece.text, piece.target, links) for piece in text)


def named(text: str, target: PageRef, links: PageLinks) -> Markup:
    """The name of a page, as a link if the page can be reached."""
    address = links.link(target)
    return element("a", text, href=address) if address else element("code", text)


def badge(text: str, kind: str = "") -> Markup:
    return element("span", text, class_=f"badge {kind}".strip())


def crumbs(page: Page, links: PageLinks) -> Markup:
    kind = page.ref.kind
    section = f"{links.home}#{kind}s" if links.home else None
    steps = [("Kafka’s protocol", links.home), (SECTIONS[kind], section)]
    items = [element("li", element("a", text, href=address) if address else text) for text, address in steps]
    own = element("li", page.ref.name, aria_current="page")
    return element("nav", element("ol", *items, own), class_="crumbs", aria_label="Where this page is")


def section(name: str, title: str, links: PageLinks, *content: str, note: str = "") -> Markup:
    heading = f"{links.prefix}{name}-title"
    beside = joined([" ", element("small", note)]) if note else NOTHING
    return element(
        "section",
        element("h2", title, beside, id=heading),
        *content,
        id=f"{links.prefix}{name}",
        class_=name,
        aria_labelledby=heading,
    )


def table(caption: str, headings: Sequence[str], rows: Sequence[Markup], kind: str) -> Markup:
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in headings)))
    hidden = element("caption", caption)
    return element("table", hidden, head, element("tbody", *rows), class_=kind)
