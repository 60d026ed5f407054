"""Words that all renderers for people share."""

from __future__ import annotations

from ottla.explain.page import MessagePage, VersionRow

STORY_WORDS = ("For", "Sent by", "Before", "After")
"""Headings of purpose, sender, previous and next."""
SIZE_LEGEND = (
    "Sizes in bytes; n is a length or a count. A varint, as in compact types and tagged fields, takes 1 byte below 128 "
    "and up to 5 above. A tagged field has its tag and its size before it, one varint each."
)
CHANGE_WORDS = {"added": "new", "removed": "gone", "changed": "changed"}


def facts(page: MessagePage) -> list[str]:
    """Kind, key, versions and the like, each in a few words."""
    found = [page.kind]
    if page.api_key is not None:
        found.append(f"{'API key' if page.ref.kind == 'api' else 'record type'} {page.api_key}")
    low, high = page.versions[0], page.versions[-1]
    found.append(f"versions {low}–{high}" if low < high else f"version {low} only")
    if page.unstable:
        found.append(f"v{page.version} is unstable")
    found.append(flexible_text(page))
    if page.listeners:
        found.append(f"served by {' and '.join(page.listeners)}")
    if page.stored_in:
        found.append(f"in {page.stored_in}")
    return found


def flexible_text(page: MessagePage) -> str:
    if page.flexible_from is None:
        return "never flexible"
    return "always flexible" if page.flexible_from <= page.versions[0] else f"flexible from v{page.flexible_from}"


def unchanged(page: MessagePage, row: VersionRow) -> str:
    """The text for a version without notes and changes."""
    if row.version == 0:
        return "The first version."
    if row.version == page.versions[0]:
        return "The oldest version that Kafka 4 still has."
    has_other_half = page.counterpart is not None and page.counterpart.part is not None
    return f"Same layout; see the {page.counterpart.part}." if has_other_half and page.counterpart else "Same layout."
