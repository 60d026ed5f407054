"""The search box for groups, which the page's script fills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ottla.draw.markup import NOTHING, Markup, element
from ottla.spark.report.html_table import DETAIL, permalink

__all__ = ["search_box"]

SEARCHED_MAX: Final = 20_000
NOT_DRAWN: Final = {"rebalances_strip": "", "lag_strip": ""}
"""Instead of null, which means that there is nothing to draw."""


def search_box(table: Mapping[str, Any]) -> Markup:
    """Without scripts there is the table of groups."""
    rows, drawn = table["rows"][:SEARCHED_MAX], DETAIL.get().drawn_groups
    if not rows:
        return NOTHING
    rows = [*rows[:drawn], *({**row, **NOT_DRAWN} for row in rows[drawn:])]
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
