"""What the pages about a topic have in common: where the reader is, and where else he may go."""

from __future__ import annotations

from ottla.console.addresses import href
from ottla.draw.markup import Markup, element, joined

__all__ = ["nav_of_topic", "select"]


def nav_of_topic(topic: str, current: str, last: str = "") -> Markup:
    """The way to this page, and the pages of the topic; `last` is a step below them."""
    steps = [element("a", "Topics", href="/topics"), element("a", topic, href=href("topics", topic))]
    if current == "records":
        steps.append(element("a", "Records", href=href("topics", topic, "records")))
    if last:
        steps.append(element("span", last))
    crumbs = element("nav", element("ol", *(element("li", each) for each in steps)), class_="crumbs", aria_label="Path")
    pages = (("topic", "Partitions and settings", href("topics", topic)),
             ("records", "Records", href("topics", topic, "records")))  # fmt: skip
    tabs = [
        element("li", element("a", title, href=path, aria_current="page" if name == current else None))
        for name, title, path in pages
    ]
    return joined([crumbs, element("nav", element("ul", *tabs), class_="tabs", aria_label="Pages of the topic")])


def select(label: str, name: str, chosen: str, choices: dict[str, str]) -> Markup:
    """A field of a form with a choice; `choices` are values with their words."""
    options = [element("option", words, value=value, selected=value == chosen) for value, words in choices.items()]
    return element("label", label, element("select", *options, name=name))
