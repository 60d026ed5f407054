"""Epochs and members of a group over time, as steps: a lane for each, one above the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element
from ottla.health.phrases import duration
from ottla.observe.series_history import Point

__all__ = ["epoch_plot", "shown_until_ms", "steps"]

WIDTH: Final = 720
HEIGHT: Final = 40
MARGIN: Final = 4
REST: Final = 4
"""After the last change the plot goes on for this part of the time that it covers."""
REST_MIN_MS: Final = 1_000


def epoch_plot(series: Mapping[str, Sequence[Point]], now_ms: int) -> Markup:
    """One lane for each series, each with its own scale from its lowest to its highest value."""
    drawn = {name: points for name, points in series.items() if points}
    if not drawn:
        return NOTHING
    from_ms = min(points[0].at_ms for points in drawn.values())
    until_ms = shown_until_ms(from_ms, max(points[-1].at_ms for points in drawn.values()), now_ms)
    lanes = [_lane(name, points, at, from_ms, until_ms) for at, (name, points) in enumerate(drawn.items())]
    ends = element("p", moment(from_ms), element("span", duration(until_ms - from_ms)), moment(until_ms), class_="ends")
    return element("figure", element("ul", *lanes, class_="lanes"), ends, class_="epochs")


def shown_until_ms(from_ms: int, last_ms: int, now_ms: int) -> int:
    """A short time after the last change: what happened in a second long ago would else be a single line."""
    return min(now_ms, last_ms + max(REST_MIN_MS, (last_ms - from_ms) // REST))


def _lane(name: str, points: Sequence[Point], at: int, from_ms: int, until_ms: int) -> Markup:
    told = f"{name}: {_range(points)}"
    path = element("path", d=steps(points, from_ms, until_ms), class_=f"step step-{at}")
    # It is stretched to the width of the page; the words beside it are not.
    plot = element(
        "svg", element("title", told), path, viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", role="img",
        class_="steps",
    )  # fmt: skip
    return element("li", element("span", told), plot)


def _range(points: Sequence[Point]) -> str:
    low, high = min(each.value for each in points), max(each.value for each in points)
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def steps(points: Sequence[Point], from_ms: int, until_ms: int) -> str:
    """The path of a value that stays until the next point."""
    low, high = min(each.value for each in points), max(each.value for each in points)
    path = ""
    for each in points:
        x, y = _across(each.at_ms, from_ms, until_ms), _up(each.value, low, high)
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f},{y:.1f}"
    return f"{path}H{WIDTH - MARGIN}"


def _across(at_ms: int, from_ms: int, until_ms: int) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * (at_ms - from_ms) / max(1, until_ms - from_ms)


def _up(value: float, low: float, high: float) -> float:
    if low == high:
        return HEIGHT / 2
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / (high - low)
