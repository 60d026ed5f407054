"""The page with the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.broker.network.web_server import Find, Page

__all__ = ["metrics_page"]

_PATHS: Final = ("/metrics", "/")
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


def metrics_page(text: Callable[[], str]) -> Find:
    """Shows the text that `text` gives."""
    return lambda visit: Page(_PROMETHEUS, text()) if visit.path in _PATHS else None
