"""Puts a page together from its parts."""

from __future__ import annotations

from ottla.explain.conversation import GENERAL_ERRORS, counterpart, error_uses, errors, stored_in, story, summary
from ottla.explain.diagram import diagram
from ottla.explain.example import example
from ottla.explain.page import ErrorPage, MessagePage, Page, PageRef
from ottla.explain.prose import linked, message_of, ref_of
from ottla.explain.schema_text import schema_rows
from ottla.explain.versions import version_rows
from ottla.wire.errors import by_name
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import framing


def build(ref: PageRef) -> Page:
    """The page that a reference names. KeyError or ValueError for a name that does not exist."""
    if ref.kind == "error":
        return error_page(ref.name)
    name = message_of(ref)
    return message_page(name, default_version(name) if ref.version is None else ref.version)


def default_version(name: str) -> int:
    """The highest stable version."""
    entry = MESSAGES[name]
    return entry.high - 1 if entry.unstable and entry.high > entry.low else entry.high


def message_page(name: str, version: int) -> MessagePage:
    entry = MESSAGES[name]
    told = story(name, version)
    listeners = entry.listeners
    if entry.kind == "response":  # only the request's schema has it
        listeners = MESSAGES[f"{name.removesuffix('Response')}Request"].listeners
    return MessagePage(
        ref=ref_of(name, version),
        title=f"{name} v{version}",
        message=name,
        kind=entry.kind,
        api_key=entry.key,
        version=version,
        versions=tuple(range(entry.low, entry.high + 1)),
        flexible_from=entry.flexible_low if entry.flexible_low <= entry.high else None,
        unstable=entry.unstable and version == entry.high,
        listeners=listeners,
        framing=framing(name),
        stored_in=stored_in(name),
        summary=linked(summary(name), besides=name),
        purpose=told.purpose,
        sender=told.sender,
        previous=told.previous,
        next=told.next,
        counterpart=counterpart(name, version),
        errors=errors(name),
        diagram=diagram(name, version),
        schema=schema_rows(name, version),
        example=example(name, version),
        version_rows=version_rows(name, version),
    )


def error_page(name: str) -> ErrorPage:
    error = by_name(name)
    return ErrorPage(
        ref=PageRef("error", name),
        title=f"{name} ({error.value})",
        name=name,
        code=error.value,
        retriable=error.retriable,
        exception=error.exception,
        meaning=linked(error.meaning, besides=name),
        remedy=linked(error.remedy, besides=name),
        general=error in GENERAL_ERRORS,
        uses=error_uses(error),
    )
