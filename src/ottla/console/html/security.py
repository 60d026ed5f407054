"""What the pages about security have in common: their tabs, and how they say that there is nothing to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.console.html.navigation import tabs
from ottla.console.html.parts import command, nothing
from ottla.console.page import Degraded
from ottla.draw.markup import Markup, element, joined

__all__ = ["not_shown", "security_tabs"]

TABS: Final = (
    ("/security/acls", "ACLs"),
    ("/security/users", "Users"),
    ("/security/quotas", "Quotas"),
    ("/security/tokens", "Tokens"),
)


def security_tabs(current: str) -> Markup:
    return tabs(TABS, current, "Security")


def not_shown(what: str, degraded: Sequence[Degraded]) -> Markup | None:
    """Why a list cannot be shown; None if it can."""
    if not degraded:
        return None
    why = degraded[0].why
    told = nothing(f"{what} cannot be shown: {why}.")
    if not why.startswith("needs "):
        return told
    rights = element("p", "ACLs for read-only access: ", command("ottla acls console"), ".")
    return joined([told, rights])
