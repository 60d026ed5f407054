"""The page with the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.broker.network.web_server import Page, WebServer

__all__ = ["metrics_server"]

_PATHS: Final = ("/metrics", "/")
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


def metrics_server(text: Callable[[], str]) -> WebServer:
    """Serves the text that `text` gives."""
    return WebServer(lambda path: Page(_PROMETHEUS, text()) if path in _PATHS else None)
