"""Text that others have written, on a terminal, which would obey some of its characters."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """A text on one line, without control characters and without those that turn the text around: names of groups,
    members and clients can hold any."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
