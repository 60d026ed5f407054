"""What the pages about a topic have in common: where the reader is, and where else he may go."""

from __future__ import annotations

from ottla.console.addresses import href
from ottla.console.html.navigation import crumbs, tabs
from ottla.draw.markup import Markup, joined

__all__ = ["nav_of_topic"]


def nav_of_topic(topic: str, current: str, last: str = "") -> Markup:
    """The way to this page, and the pages of the topic; `last` is a step below them."""
    own, records = href("topics", topic), href("topics", topic, "records")
    steps = [("Topics", "/topics"), (topic, own)]
    if current == "records":
        steps.append(("Records", records))
    pages = ((own, "Partitions and settings"), (records, "Records"))
    return joined(
        [crumbs(*steps, last=last), tabs(pages, records if current == "records" else own, "Pages of the topic")]
    )
