"""A labelled piece of bytes before it gets its colour."""

from __future__ import annotations

from typing import NamedTuple


class RawSpan(NamedTuple):
    """Bytes `start` to `end`; see `ottla.explain.page.Span` for the words."""

    start: int
    end: int
    path: str
    role: str
    type: str
    value: str
