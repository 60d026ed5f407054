"""How long members of a share group may keep what they hold: clocks that run out, and the same as text.

The script lets both run. There is one clock for each second in which locks of a member end, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.draw.forms import ago
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.phrases import plural

__all__ = ["Lock", "lock_clocks", "time_left", "together"]

CLOCKS_MAX: Final = 50


class Lock(NamedTuple):
    left_ms: int
    member: str
    records: int
    ranges: int = 1


def together(locks: Iterable[Lock]) -> list[Lock]:
    """Those of a member that end in the same second are one; the first to end comes first."""
    found: dict[tuple[int, str], Lock] = {}
    for each in locks:
        key = each.left_ms // 1000, each.member
        known = found.get(key)
        found[key] = each if known is None else _both(known, each)
    return sorted(found.values())


def _both(one: Lock, other: Lock) -> Lock:
    left_ms = min(one.left_ms, other.left_ms)
    return Lock(left_ms, one.member, one.records + other.records, one.ranges + other.ranges)


def time_left(ms: int) -> Markup:
    """A time that the script counts down."""
    return element("span", ago(ms) if ms > 0 else "over", data_left=max(0, ms))


def lock_clocks(locks: Sequence[Lock], whole_ms: int | None) -> Markup:
    """`whole_ms` is how long a lock lasts."""
    if not locks:
        return NOTHING
    shown = [_entry(each, whole_ms) for each in locks[:CLOCKS_MAX]]
    if len(locks) > CLOCKS_MAX:
        shown.append(element("li", f"and {len(locks) - CLOCKS_MAX} more"))
    return element("ul", *shown, class_="legend clocks", aria_label="Locks, the first to end first")


def _entry(lock: Lock, whole_ms: int | None) -> Markup:
    what = plural(lock.records, "record")
    told = f" {lock.member}: {what}" + (f" in {lock.ranges} ranges" if lock.ranges > 1 else "")
    face = NOTHING if whole_ms is None else _face(lock.left_ms, whole_ms)
    return element("li", joined([face, " ", time_left(lock.left_ms), told]))


def _face(left_ms: int, whole_ms: int) -> Markup:
    left = min(max(0, left_ms), whole_ms)
    hand = element(
        "circle", cx=8, cy=8, r=4, pathLength=100, stroke_dasharray=100, class_="hand", transform="rotate(-90 8 8)",
        stroke_dashoffset=100 - 100 * left // max(1, whole_ms), data_left=left, data_whole=whole_ms,
    )  # fmt: skip
    return element(
        "svg", element("circle", cx=8, cy=8, r=7, class_="face"), hand, viewBox="0 0 16 16", width=16, height=16,
        class_="clock", aria_hidden="true",
    )  # fmt: skip
