"""Ways through the pages: breadcrumbs, tabs, and forms that narrow a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.draw.markup import NOTHING, Markup, element

__all__ = ["Choice", "Field", "Switch", "Text", "crumbs", "every_one_of", "filter_form", "switches", "tabs", "walked"]


class Text(NamedTuple):
    """A field to type in."""

    name: str
    label: str
    hint: str = ""
    width: int | None = None
    kind: str = "search"

    def field(self, value: str) -> Markup:
        hint = self.hint or None
        return element("input", type=self.kind, name=self.name, value=value, placeholder=hint, size=self.width)


class Choice(NamedTuple):
    """A field with a few values, each with its words."""

    name: str
    label: str
    values: Mapping[str, str]

    def field(self, value: str) -> Markup:
        options = [element("option", words, value=each, selected=each == value) for each, words in self.values.items()]
        return element("select", *options, name=self.name)


Field = Text | Choice


def every_one_of(values: Iterable[str]) -> dict[str, str]:
    """A choice between these and all of them."""
    return {"": "all"} | {each: each for each in values}


def filter_form(
    path: str, fields: Iterable[Field], query: Mapping[str, str], *, hidden: Iterable[str] = (), button: str = "Show"
) -> Markup:
    """A form that asks for the same page with another query; what is `hidden` stays as it is."""
    kept = [element("input", type="hidden", name=name, value=query[name]) for name in hidden if query.get(name)]
    labels = [element("label", each.label, each.field(query.get(each.name, ""))) for each in fields]
    submit = element("button", button, type="submit", class_="tool")
    return element("form", *kept, *labels, submit, action=path, method="get", class_="filter", role="search")


def tabs(entries: Iterable[tuple[str, str]], current: str, label: str) -> Markup:
    """Addresses and titles of pages that belong together."""
    items = [
        element("li", element("a", title, href=path, aria_current="page" if path == current else None))
        for path, title in entries
    ]
    return element("nav", element("ul", *items), class_="tabs", aria_label=label)


class Switch(NamedTuple):
    """One of several ways to show the same page."""

    text: str
    address: str
    is_on: bool


def switches(label: str, entries: Iterable[Switch]) -> Markup:
    links = [
        element("a", each.text, href=each.address, aria_current="true" if each.is_on else None, data_stay=True)
        for each in entries
    ]
    return element("span", element("span", label), *links, class_="switches", role="group", aria_label=label)


def walked(figure: Markup, hint: str) -> Markup:
    """A figure in which the script lets arrow keys go from one link or box to the next; a line tells which it is."""
    told = element("p", class_="told", role="status")
    return element("div", figure, told, data_walk=hint)


def crumbs(steps: Iterable[tuple[str, str]]) -> Markup:
    """The pages above a page: titles and addresses."""
    items = [element("li", element("a", title, href=path)) for title, path in steps]
    if not items:
        return NOTHING
    return element("nav", element("ol", *items), class_="crumbs", aria_label="Breadcrumbs")
