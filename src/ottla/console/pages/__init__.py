"""All pages of the console, one module each."""

from __future__ import annotations

from typing import Final

from ottla.console.page import Page
from ottla.console.pages import overview, record, records, topic, topics

__all__ = ["PAGES"]

PAGES: Final[tuple[Page, ...]] = (
    overview.PAGE,
    topics.PAGE,
    topic.PAGE,
    records.PAGE,
    record.PAGE,
)
