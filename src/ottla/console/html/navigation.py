"""Ways through the pages: breadcrumbs, tabs, and forms that narrow a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.console.html.parts import link
from ottla.draw.markup import Markup, element, escaped

__all__ = ["Choice", "Text", "crumbs", "filter_form", "tabs"]


class Text(NamedTuple):
    """A field to type in."""

    name: str
    label: str
    hint: str = ""

    def field(self, value: str) -> Markup:
        return element("input", type="search", name=self.name, value=value, placeholder=self.hint or None)


class Choice(NamedTuple):
    """A field with a few values; all, if none is chosen."""

    name: str
    label: str
    values: Sequence[str]

    def field(self, value: str) -> Markup:
        options = [element("option", each, value=each, selected=each == value) for each in self.values]
        return element("select", element("option", "all", value=""), *options, name=self.name)


def filter_form(path: str, fields: Iterable[Text | Choice], query: dict[str, str]) -> Markup:
    labels = [element("label", each.label, each.field(query.get(each.name, ""))) for each in fields]
    button = element("button", "Show", type="submit", class_="tool")
    return element("form", *labels, button, action=path, method="get", class_="filter", role="search")


def tabs(entries: Iterable[tuple[str, str]], current: str, label: str) -> Markup:
    """Addresses and titles of pages that belong together."""
    items = [
        element("li", element("a", title, href=path, aria_current="page" if path == current else None))
        for path, title in entries
    ]
    return element("nav", element("ul", *items), class_="tabs", aria_label=label)


def crumbs(title: str, section: str, here: str) -> Markup:
    """The way from a section of the navigation to one thing in it."""
    items = [element("li", link(title, section)), element("li", escaped(here), aria_current="page")]
    return element("nav", element("ol", *items), class_="crumbs", aria_label="Breadcrumbs")
