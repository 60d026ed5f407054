"""The page with the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.broker.network.web_server import Find, Page
from ottla.wire.exposition import CONTENT_TYPE

__all__ = ["metrics_page"]

_PATHS: Final = ("/metrics", "/")


def metrics_page(text: Callable[[], str]) -> Find:
    """Shows the text that `text` gives."""
    return lambda visit: Page(CONTENT_TYPE, text()) if visit.path in _PATHS else None
