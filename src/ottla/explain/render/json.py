"""Pages as JSON: one object whose `rows` are the pages themselves, or the lines of the list of all pages."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ottla.explain.page import CatalogueSection, Page


def render(pages: Sequence[Page]) -> str:
    return _rows(pages)


def catalogue(sections: Sequence[CatalogueSection]) -> str:
    return _rows([
        {"section": section.title} | msgspec.structs.asdict(row) for section in sections for row in section.rows
    ])  # fmt: skip


def _rows(rows: Sequence[object]) -> str:
    return msgspec.json.format(msgspec.json.encode({"rows": rows}), indent=2).decode()
