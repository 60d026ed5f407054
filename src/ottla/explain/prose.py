"""Texts with links: the names of messages and errors in a sentence lead to their pages."""

from __future__ import annotations

import re
from functools import cache

from ottla.explain.page import PageRef, Prose, ProsePiece
from ottla.wire.errors import ErrorCode
from ottla.wire.index import MESSAGES

# "Metadata log" at the beginning of a sentence does not mean the request.
_WORD = re.compile(r"\b(?!Metadata log)[A-Z][A-Za-z0-9_]*[A-Za-z0-9]")
_ORDINARY_WORDS = frozenset({"NONE"})
"""Names that are also ordinary words."""


@cache
def targets() -> dict[str, PageRef]:
    """Every name that has a page: APIs with and without Request and Response, records, headers, errors."""
    found = {}
    for name, entry in MESSAGES.items():
        found[name] = ref_of(name)
        if entry.kind == "request":
            api = name.removesuffix("Request")
            found[api] = PageRef("api", api)
    found |= {error.name: PageRef("error", error.name) for error in ErrorCode if error.name not in _ORDINARY_WORDS}
    return found


def ref_of(name: str, version: int | None = None) -> PageRef:
    """The page of a message by Kafka's name."""
    kind = MESSAGES[name].kind
    if kind == "request":
        return PageRef("api", name.removesuffix("Request"), "request", version)
    if kind == "response":
        return PageRef("api", name.removesuffix("Response"), "response", version)
    return PageRef("header" if kind == "header" else "record", name, None, version)


def message_of(ref: PageRef) -> str:
    """Kafka's name of the message that a page is about; an API alone means its request."""
    return f"{ref.name}{(ref.part or 'request').capitalize()}" if ref.kind == "api" else ref.name


def linked(text: str, *, besides: str = "") -> Prose:
    """The text with links, except to the message or error `besides`, on whose page the text is."""
    own = besides.removesuffix("Request").removesuffix("Response")
    pieces: list[ProsePiece] = []
    at = 0
    for match in _WORD.finditer(text):
        target = targets().get(match[0])
        if target is None or target.name in (own, besides):
            continue
        if match.start() > at:
            pieces.append(ProsePiece(text[at : match.start()]))
        pieces.append(ProsePiece(match[0], target))
        at = match.end()
    if at < len(text):
        pieces.append(ProsePiece(text[at:]))
    return tuple(pieces)
