"""The search index of the site: every message, field and error, small enough to be loaded with a page.

The index is a script that sets one variable, because a page that is opened from a disk may not load data files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.explain.address import exact, field_anchor, stem
from ottla.explain.kips import kips_of
from ottla.explain.page import ErrorPage, MessagePage, Page, PageRef, plain

VARIABLE = "ottlaIndex"


@dataclass(slots=True)
class _Message:
    page: MessagePage
    """The page of the default version."""
    fields: dict[str, int] = field(default_factory=dict)
    """Anchor of a field -> the version to show it in: the default one if it has the field, else the newest that has."""


class PageSection(NamedTuple):
    anchor: str
    heading: str
    words: str
    """In small letters, with a space before each."""


class OtherPage(NamedTuple):
    """A page of a larger site that is not about a message or an error."""

    path: str
    title: str
    sections: Sequence[PageSection]


@dataclass(slots=True)
class SearchIndex:
    """Collects the entries of the index from pages."""

    messages: dict[PageRef, _Message] = field(default_factory=dict)
    errors: list[ErrorPage] = field(default_factory=list)
    others: Sequence[OtherPage] = ()

    def add(self, page: Page) -> None:
        if isinstance(page, ErrorPage):
            self.errors.append(page)
            return
        default = exact(PageRef(page.ref.kind, page.ref.name, page.ref.part))
        found = self.messages.setdefault(default, _Message(page))
        if page.ref == default:
            found.page = page
        for row in page.schema:
            anchor = field_anchor(row.path)
            if found.fields.get(anchor) != default.version:
                found.fields[anchor] = page.version

    def script(self) -> str:
        """The index as JavaScript, one message or error a line."""
        messages = [_message_entry(found) for found in self.messages.values()]
        errors = [[page.code, page.name, page.exception or "", plain(page.meaning)] for page in self.errors]
        parts = {"messages": messages, "errors": errors, "pages": self.others}
        inner = "".join(f" {name}: {_lines(entries)},\n" for name, entries in parts.items())
        return f"window.{VARIABLE} = {{\n{inner}}};\n"


def _message_entry(found: _Message) -> list[object]:
    """Name, key, path of its pages, default version, summary, KIPs, and fields by the version to show them in."""
    page = found.page
    fields: dict[int, list[str]] = {}
    for anchor, version in sorted(found.fields.items(), key=lambda item: item[1] != page.version):
        fields.setdefault(version, []).append(anchor.removeprefix("f-"))
    listed = [[version, *anchors] for version, anchors in fields.items()]
    return [
        page.message,
        page.api_key,
        stem(page.ref),
        page.version,
        plain(page.summary),
        kips_of(page.message),
        listed,
    ]


def _lines(entries: Sequence[Sequence[object]]) -> str:
    inner = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    return f"[\n{inner}\n]"
