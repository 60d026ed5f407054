"""The search box for groups, which the page's script fills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ottla.draw.markup import NOTHING, Markup, element
from ottla.spark.report.html_table import DETAIL, permalink

__all__ = ["search_box"]


def search_box(table: Mapping[str, Any]) -> Markup:
    """Without scripts there is the table of groups."""
    rows = table["rows"][: DETAIL.get().groups]
    if not rows:
        return NOTHING
    # Without names of columns, and with no character that could end the script.
    data = Markup(msgspec.json.encode([list(row.values()) for row in rows]).decode().replace("<", "\\u003c"))
    field = element("input", type="search", autocomplete="off", spellcheck="false")
    return element(
        "div",
        element("h3", f"Find one of {len(rows):,} groups", permalink("all-groups")),
        element("label", "Name, kind or state ", field),
        element("p", class_="read", role="status"),
        element("ul"),
        element("script", data, type="application/json"),
        class_="search",
        id="all-groups",
        hidden=True,
    )
