"""All pages of the console, one module each."""

from __future__ import annotations

from typing import Final

from ottla.console.page import Page
from ottla.console.pages import (
    group,
    group_offsets,
    group_timeline,
    group_topology,
    groups,
    overview,
    share_window,
)

__all__ = ["PAGES"]

PAGES: Final[tuple[Page, ...]] = (
    overview.PAGE,
    groups.PAGE,
    group.PAGE,
    group_offsets.PAGE,
    group_timeline.PAGE,
    group_topology.PAGE,
    share_window.PAGE,
)
