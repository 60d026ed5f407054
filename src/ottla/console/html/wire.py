"""What the pages about the protocol have in common."""

from __future__ import annotations

from typing import Final

from ottla.console.html.navigation import tabs
from ottla.draw.markup import Markup

__all__ = ["wire_tabs"]

TABS: Final = (("/wire", "Messages and errors"), ("/wire/decode", "Decoder"))


def wire_tabs(current: str) -> Markup:
    return tabs(TABS, current, "Protocol")
