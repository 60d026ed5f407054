"""Colours by kind of node. Every kind also has its word and its shape, so nothing depends on colour alone."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.draw.graph import NodeKind


class Colours(NamedTuple):
    """A light and a dark scheme; text on the fill has a contrast of 7 to 1 or more in both."""

    fill: tuple[str, str]
    line: tuple[str, str]


PAGE: Final = ("#ffffff", "#12161c")
TEXT: Final = ("#1b1f24", "#e6eaf0")
MUTED: Final = ("#57606a", "#a3adba")
WIRE: Final = ("#57606a", "#8f9bab")
FRAME: Final = Colours(("#f4f6f8", "#1b212a"), ("#8c959f", "#4a5564"))
BACK: Final = ("#b3261e", "#ff9b8f")

NODES: Final = {
    NodeKind.TOPIC: Colours(("#e8f1fb", "#1b2a3d"), ("#0b5cad", "#7cb8ff")),
    NodeKind.REPARTITION: Colours(("#fdf1dc", "#362a12"), ("#8a5300", "#f2b84b")),
    NodeKind.OPEN: Colours(("#e8f1fb", "#1b2a3d"), ("#0b5cad", "#7cb8ff")),
    NodeKind.SOURCE: Colours(("#e4f5ec", "#14301f"), ("#11693f", "#6fd3a3")),
    NodeKind.PROCESSOR: Colours(("#ffffff", "#232b36"), ("#57606a", "#8f9bab")),
    NodeKind.SINK: Colours(("#fde9e7", "#3a1c1a"), ("#b3261e", "#ff9b8f")),
    NodeKind.STORE: Colours(("#f1e8fb", "#2b1f3d"), ("#6b21a8", "#c9a8ff")),
    NodeKind.SUBTOPOLOGY: FRAME,
}

TERMINAL_COLOURS: Final = {
    NodeKind.TOPIC: "36",
    NodeKind.REPARTITION: "33",
    NodeKind.OPEN: "36",
    NodeKind.SOURCE: "32",
    NodeKind.PROCESSOR: "",
    NodeKind.SINK: "31",
    NodeKind.STORE: "35",
    NodeKind.SUBTOPOLOGY: "",
}
"""Colour numbers of the terminal's own palette, so that they fit its background."""
TERMINAL_FRAME: Final = "2"
