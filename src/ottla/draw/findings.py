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
    for ending in ("_ms", "_percent", "_bytes"):
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _value(name: str, value: Any) -> Markup:  # noqa: ANN401 - whatever a rule gives
    match value:
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


def _number(name: str, value: float) -> Markup:
    if name.endswith("_ms"):
        return moment(round(value)) if value > EPOCH_MS else ago(value)
    if name.endswith("percent"):
        return percent(value)
    plain = any(word in name for word in ("epoch", "offset", "leader", "port", "node", "watermark"))
    return escaped(str(value)) if plain else number(value)


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
