"""What the report and the console show alike of a finding: its evidence, and the source of its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.draw.forms import UNKNOWN, ago, identity, moment, number, percent
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.health.phrases import offsets

__all__ = ["TIERS", "evidence"]

TIERS: Final = {
    "A": "cluster API",
    "S": "samples over time",
    "R": "internal topics",
    "O": "ottla broker metrics",
}
LABELS: Final = {
    "apis": "APIs",
    "behind_ms": "behind by",
    "could_lead": "replicas that could lead",
    "end": "end offset",
    "expired": "expired locks",
    "failed": "failed logins",
    "first_ms": "first at",
    "gap_ms": "without a leader for",
    "grown": "grown by",
    "held": "in flight",
    "hit": "affected",
    "hold_back": "held back by",
    "ids": "member ids",
    "isr": "in sync",
    "kept": "still held",
    "known": "transactional id known",
    "largest": "largest number of members",
    "left": "offsets left",
    "lock_ms": "lock duration",
    "lost": "lost records",
    "lost_a_copy": "partitions with a replica less",
    "min_isr": "min.insync.replicas",
    "missing": "missing replicas",
    "moved": "leaders moved",
    "newest_ms": "last sample",
    "others": "other clients",
    "per_minute": "growth per minute",
    "refused": "refused requests",
    "rise": "epoch rose by",
    "rises": "epoch increments",
    "room": "limit",
    "start": "start offset",
    "still_ms": "unchanged for",
    "stood_still_ms": "no progress for",
    "total_bytes": "disk size",
    "usable_bytes": "free",
    "waiting": "waiting members",
    "wanted": "waits for",
    "worst": "most affected",
}
"""Names in evidence that do not explain themselves; the others are shown as they are."""
LIMITS: Final = {
    "behind_s": "behind for",
    "critical_percent": "critical below",
    "critical_rises": "critical from",
    "critical_s": "critical from",
    "critical_share": "critical from a share of",
    "factor": "by a factor of",
    "fetch_s": "no fetch for",
    "full_within_h": "full within",
    "grace_s": "after",
    "hold_h": "for",
    "hold_s": "for",
    "ids": "member ids",
    "internal_hold_s": "internal topics for",
    "interval_s": "interval of",
    "locks": "lock durations",
    "percent": "",
    "rises": "epoch increments",
    "trend_min": "trend of",
    "usable_percent": "free below",
    "window_s": "within",
    "within_h": "within",
    "within_s": "within",
}
"""The same for thresholds."""
PLAIN: Final = frozenset({"committed", "end", "log_end", "log_start", "start"})
"""Offsets, which are shown with all digits and no separators."""
UNITS: Final = {"_s": "s", "_min": "min", "_h": "h", "percent": "%"}
LISTED: Final = 6
EPOCH_MS: Final = 10**12
"""Numbers above this whose names end in _ms are times, not durations."""


def evidence(found: Mapping[str, Any]) -> Markup:
    """Names and values; what is a time, a duration or a percentage is shown as one."""
    items = [
        element("div", element("dt", _label(name)), element("dd", _value(name, value))) for name, value in found.items()
    ]
    return element("dl", *items, class_="evidence") if items else NOTHING


def _label(name: str) -> str:
    if name in LABELS:
        return LABELS[name]
    for ending in ("_ms", "_percent", "_bytes"):
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _value(name: str, value: Any) -> Markup:  # noqa: ANN401 - whatever a rule gives
    match value:
        case dict() if name == "thresholds":
            return escaped(", ".join(_limit(key, each) for key, each in value.items()))
        case None:
            return UNKNOWN
        case bool():
            return escaped("yes" if value else "no")
        case int() | float():
            return _number(name, value)
        case list():
            return _list(value)
        case dict():
            return joined([f"{key}: {each}" for key, each in list(value.items())[:LISTED]], ", ")
        case _:
            return identity(value)


def _limit(name: str, value: float) -> str:
    """`for 10 s`, `30 %`, `elections 3`."""
    unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
    if unit == "s" and value >= 60 and value % 60 == 0:
        value, unit = value / 60, "min"
    return f"{LIMITS.get(name, name.replace('_', ' '))} {value:g} {unit}".strip()


def _number(name: str, value: float) -> Markup:
    if name.endswith("_ms"):
        return moment(round(value)) if value > EPOCH_MS else ago(value)
    if name.endswith("percent"):
        return percent(value)
    is_plain = name in PLAIN or any(word in name for word in ("epoch", "offset", "leader", "port", "node", "watermark"))
    return escaped(str(value)) if is_plain else number(value)


def _list(values: Sequence[Any]) -> Markup:
    if not values:
        return escaped("none")
    if all(isinstance(each, list) and len(each) == 3 for each in values):
        return escaped(_records(values))
    rest = len(values) - LISTED
    return escaped(", ".join(map(str, values[:LISTED])) + (f" and {rest:,} more" if rest > 0 else ""))


def _records(values: Sequence[Sequence[Any]]) -> str:
    """Records as `orders-0: 4, 7; orders-1: 9`."""
    places: dict[str, list[int]] = {}
    for topic, partition, offset in values:
        places.setdefault(f"{topic}-{partition}", []).append(offset)
    shown = [f"{where}: {offsets(found)}" for where, found in list(places.items())[:LISTED]]
    rest = len(places) - LISTED
    return "; ".join(shown) + (f" and {rest:,} more partitions" if rest > 0 else "")
