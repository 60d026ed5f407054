"""Numbers, durations and times on the page. An unknown value is a dash, never 0."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from ottla.draw.markup import Markup, element, escaped, joined
from ottla.health.phrases import duration

__all__ = [
    "UNKNOWN",
    "ago",
    "identity",
    "iso",
    "moment",
    "number",
    "percent",
    "ratio",
    "short_number",
    "shortened",
    "span",
]

EXACT_DIGITS: Final = 7
UNKNOWN: Final = element("span", "–", title="unknown", class_="unknown")
_SHORT: Final = ((10**12, "T"), (10**9, "G"), (10**6, "M"))
UUID: Final = re.compile(r"\b([0-9a-fA-F]{8})(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
SHORT_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


def number(value: float | None) -> Markup:
    """`1,234,567`; a larger number as `12.3 M`, with all digits in a tooltip."""
    if value is None:
        return UNKNOWN
    exact = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if abs(value) < 10**EXACT_DIGITS:
        return escaped(exact)
    return element("span", short_number(value), title=exact)


def short_number(value: float) -> str:
    """For axes: `1,200`, `12.3 M`, `0.5`."""
    for unit, letter in _SHORT:
        if abs(value) >= max(unit, 10**EXACT_DIGITS):
            return f"{value / unit:.1f} {letter}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def ratio(value: float | None) -> Markup:
    """A ratio as a percentage."""
    return UNKNOWN if value is None else percent(100 * value)


def percent(value: float | None) -> Markup:
    return UNKNOWN if value is None else escaped(f"{value:.1f} %".replace(".0 %", " %"))


def ago(ms: float | None) -> Markup:
    """A duration."""
    return UNKNOWN if ms is None else escaped(duration(ms))


def iso(ms: int) -> str:
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def moment(ms: int | None) -> Markup:
    """A time in UTC; the script can show the reader's own time zone. The bare number if it is after the year 9999."""
    if ms is None:
        return UNKNOWN
    try:
        exact = iso(ms)
    except (ValueError, OverflowError):
        return escaped(str(ms))
    return element("time", f"{exact[:10]} {exact[11:19]}", datetime=exact, title=exact)


def span(from_ms: int, to_ms: int | None) -> Markup:
    """Start, end and duration."""
    if to_ms is None:
        return joined(["since ", moment(from_ms)])
    if to_ms == from_ms:
        return joined(["at ", moment(from_ms)])
    return joined(["from ", moment(from_ms), " to ", moment(to_ms), f" ({duration(to_ms - from_ms)})"])


def identity(value: object) -> Markup:
    """An id, shortened; the script offers the whole for copying. Names that are not random stay whole."""
    if value is None:
        return UNKNOWN
    text = str(value)
    short = shortened(text)
    return element("code", text) if short == text else element("code", short, title=text, data_copy=text, class_="id")


def shortened(text: str) -> str:
    """The text with a uuid in it, in either form, shortened to its first eight characters."""
    before, space, last = text.rpartition(" ")
    if SHORT_UUID.fullmatch(last) and any(letter.isdigit() for letter in last):
        return f"{before}{space}{last[:8]}…"
    return UUID.sub(r"\1…", text)
