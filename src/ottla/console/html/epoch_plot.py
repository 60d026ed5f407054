"""Epochs and members of a group over time, as steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.draw.markup import NOTHING, Markup, element
from ottla.health.phrases import duration
from ottla.observe.series_history import Point

__all__ = ["epoch_plot", "steps"]

WIDTH: Final = 720
HEIGHT: Final = 120
MARGIN: Final = 8


def epoch_plot(series: Mapping[str, Sequence[Point]], until_ms: int) -> Markup:
    """One line of steps for each series, each with its own scale from its lowest to its highest value."""
    drawn = {name: points for name, points in series.items() if points}
    if not drawn:
        return NOTHING
    from_ms = min(points[0].at_ms for points in drawn.values())
    paths = [
        element("path", element("title", name), d=steps(points, from_ms, until_ms), class_=f"step step-{at}")
        for at, (name, points) in enumerate(drawn.items())
    ]
    told = "; ".join(f"{name} {_range(points)}" for name, points in drawn.items())
    legend = element(
        "ul", *(_entry(name, points, at) for at, (name, points) in enumerate(drawn.items())), class_="legend"
    )
    return element(
        "figure",
        element(
            "svg",
            element("title", f"{told}, over {duration(until_ms - from_ms)}"),
            *paths,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            class_="steps",
        ),
        legend,
    )


def _entry(name: str, points: Sequence[Point], at: int) -> Markup:
    sample = element("svg", element("path", d="M1,6L23,6", class_=f"step step-{at}"), viewBox="0 0 24 12",
                     width=24, height=12, aria_hidden="true")  # fmt: skip
    return element("li", sample, " ", f"{name}: {_range(points)}")


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
