"""All pages of the console, one module each."""

from __future__ import annotations

from typing import Final

from ottla.console.page import Page
from ottla.console.pages import decode, overview, pipeline, wire

__all__ = ["PAGES"]

PAGES: Final[tuple[Page, ...]] = (overview.PAGE, pipeline.PAGE, decode.PAGE, *wire.PAGES)
