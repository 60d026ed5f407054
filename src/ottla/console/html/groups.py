"""Parts that the pages about groups have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.console.addresses import href
from ottla.console.html.navigation import tabs
from ottla.console.html.parts import Column, absent, offset
from ottla.draw.markup import Markup, element

__all__ = ["EPOCHS", "SHARE_LAG", "epochs", "group_tabs", "has_epochs", "long_list", "member_names"]

SHARE_LAG: Final = (
    "Records that are not processed yet. Share groups count undelivered and in-flight records; other groups count from "
    "the committed offset. Lags of different kinds are never added."
)
_TABS: Final = {
    "classic": ("", "offsets", "timeline"),
    "consumer": ("", "offsets", "timeline"),
    "share": ("", "offsets", "timeline"),
    "streams": ("", "offsets", "timeline", "topology"),
}
EPOCHS: Final = Column("epoch (assignment)", is_number=True, is_optional=True)
LIST_OPEN: Final = 6
"""Longer lists are folded."""


def group_tabs(group: str, kind: str, current: str = "") -> Markup:
    """The pages about the group."""
    pages = [(_path(group, each), (each or "members").capitalize()) for each in _TABS.get(kind, ("",))]
    return tabs(pages, _path(group, current), "Pages of this group")


def _path(group: str, part: str) -> str:
    return href("groups", group, part) if part else href("groups", group)


def has_epochs(kind: str) -> bool:
    """Coordinators do not tell the generation of classic groups."""
    return kind != "classic"


def epochs(epoch: int | None, assignment_epoch: int | None) -> Markup:
    """The epoch of the group, and of its assignment in brackets; bold if they differ."""
    if epoch is None or assignment_epoch is None:
        return offset(None)
    text = f"{epoch:,} ({assignment_epoch:,})"
    return (
        element("span", text) if epoch == assignment_epoch else element("b", text, title="a new assignment is pending")
    )


def member_names(members: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What to call each member, of which id and client id are given: its client id, if no other member has the same."""
    known = list(members)
    clients = Counter(client for _, client in known)
    return {member: client if client and clients[client] == 1 else member for member, client in known}


def long_list(items: Sequence[str], what: str) -> Markup:
    """A list in a cell; folded if it is long."""
    if not items:
        return absent(f"no {what}")
    rows = element("ul", *(element("li", each) for each in items), class_="plain")
    if len(items) <= LIST_OPEN:
        return rows
    return element("details", element("summary", f"{len(items):,} {what}"), rows, class_="inner")
