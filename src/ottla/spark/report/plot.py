"""The common parts of all plots: the frame with its axes, the legend, and a table with the same data.

A plot is an SVG as wide as the page allows. Positions on the time axis are percentages, so that letters, dots and
hatching keep their form; only the paths of lines are stretched, without their strokes. The numbers of a path are the
data themselves: seconds since the start of the plot, and values, which the script reads for its tooltips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.draw.forms import iso
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.spark.report.axes import Scale, Tick, ticks_of_time
from ottla.spark.report.html_table import Field, listing, permalink

__all__ = [
    "Frame",
    "Key",
    "bands",
    "captioned",
    "figure",
    "level_axis",
    "percent_text",
    "time_axis",
    "twin",
    "value_axis",
]


EDGE: Final = 2  # percent
"""The labels of ticks this near to an end of the axis are not centred, so that they stay inside."""


class Frame(NamedTuple):
    """A plot without caption and legend."""

    height: int
    marks: Markup
    left: Markup
    """The labels at the left: ticks of values, or names of rows."""
    below: Markup
    wide: bool = False
    """Whether `left` needs more room, as names of rows do."""
    above: Markup = NOTHING
    """What can be clicked on along the upper edge: it must not be inside a picture."""


class Key(NamedTuple):
    """An entry of a legend: its symbol and its text."""

    swatch: Markup
    name: str


def figure(
    facts: Mapping[str, Any], frame: Frame, *, read: str, desc: str, keys: Iterable[Key], twin: Markup
) -> Markup:
    name = facts["id"]
    labels = [element("title", facts["title"], id=f"{name}-title"), element("desc", desc, id=f"{name}-desc")]
    svg = element(
        "svg",
        *labels,
        frame.marks,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        height=frame.height,
        width="100%",
    )
    high = f"height:{frame.height}px"
    parts = [
        frame.above,
        element("div", frame.left, class_="left", aria_hidden="true", style=high),
        element("div", svg, class_="area", style=high),
        element("div", frame.below, class_="below", aria_hidden="true"),
    ]
    drawn = element("div", *parts, class_="frame wide" if frame.wide else "frame")
    return captioned(facts, read, joined([legend(keys), drawn]), twin)


def captioned(facts: Mapping[str, Any], read: str, drawn: Markup, twin: Markup) -> Markup:
    """A drawing with its caption, how to read it, and the same data as a table."""
    title = element("h2" if facts["kind"] == "when" else "h3", facts["title"])
    heading = element("div", title, permalink(facts["id"]), class_="heading")
    caption = element("figcaption", heading, element("p", read, class_="read") if read else NOTHING)
    folded = element("details", element("summary", "As a table"), twin, class_="twin")
    return element("figure", caption, drawn, folded, class_=f"plot {facts['kind']}", id=facts["id"])


def legend(keys: Iterable[Key]) -> Markup:
    items = [element("li", key.swatch, key.name) for key in keys]
    return element("ul", *items, class_="legend") if items else NOTHING


def twin(name: str, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Field]) -> Markup:
    table = {"rows": rows, "total": len(rows), "order": "in the order of the plot"}
    return listing(f"{name}-twin", title, table, columns, "There is nothing to list.", is_twin=True)


def percent_text(value: float) -> str:
    """A percentage for an attribute of SVG or CSS."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"


def _grid(places: Sequence[float], *, upright: bool) -> Markup:
    """Thin lines at positions in percent."""
    if upright:
        lines = [element("line", x1=percent_text(at), x2=percent_text(at), y1="0", y2="100%") for at in places]
    else:
        lines = [element("line", x1="0", x2="100%", y1=percent_text(at), y2=percent_text(at)) for at in places]
    return element("g", *lines, class_="grid")


def time_axis(scale: Scale) -> tuple[Markup, Markup]:
    """Grid lines, and the labels below them. The date is written once, at the end."""
    ticks = ticks_of_time(scale)
    lines = element("g", *(_upright(scale, tick) for tick in ticks), class_="grid time")
    texts = [_tick(scale.percent(tick.value), tick, data_ms=round(tick.value)) for tick in ticks]
    first, last = iso(round(scale.low))[:10], iso(round(scale.high))[:10]
    days = element("span", f"{first if first == last else f'{first} to {last}'}, UTC", class_="days")
    return lines, joined([*texts, days])


def _upright(scale: Scale, tick: Tick) -> Markup:
    at = percent_text(scale.percent(tick.value))
    return element("line", x1=at, x2=at, y1="0", y2="100%")


def _tick(percent: float, tick: Tick, **more: str | int) -> Markup:
    kind = "tick begin" if percent < EDGE else "tick end" if percent > 100 - EDGE else "tick"
    return element("span", tick.text, class_=kind, style=f"left:{percent_text(percent)}", **more)


def value_axis(scale: Scale, ticks: Sequence[Tick]) -> tuple[Markup, Markup]:
    """The same for values, from below to above."""
    places = [100 - scale.percent(tick.value) for tick in ticks]
    pairs = zip(places, ticks, strict=True)
    texts = [element("span", tick.text, class_="tick", style=f"top:{percent_text(at)}") for at, tick in pairs]
    return _grid(places, upright=False), joined(texts)


def level_axis(scale: Scale, ticks: Sequence[Tick]) -> tuple[Markup, Markup]:
    """The same for values from left to right."""
    places = [scale.percent(tick.value) for tick in ticks]
    return _grid(places, upright=True), joined(_tick(at, tick) for at, tick in zip(places, ticks, strict=True))


def bands(names: Iterable[str], row_height: int) -> Markup:
    """Names of rows, each as high as its row."""
    return joined(element("span", name, class_="row", style=f"height:{row_height}px") for name in names)
