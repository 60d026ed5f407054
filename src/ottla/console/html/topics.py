"""What the pages about a topic have in common."""

from __future__ import annotations

from ottla.console.addresses import href
from ottla.console.html.navigation import tabs
from ottla.draw.markup import Markup

__all__ = ["topic_tabs"]


def topic_tabs(topic: str, current: str) -> Markup:
    """The pages about the topic."""
    own, records = href("topics", topic), href("topics", topic, "records")
    pages = ((own, "Partitions and configs"), (records, "Records"))
    return tabs(pages, records if current == "records" else own, "Pages of this topic")
