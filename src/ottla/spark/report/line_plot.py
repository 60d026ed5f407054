"""Lines over time: lag, rates, epochs. Colour, dash and dots tell them apart, and each has its name in the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.spark.report.axes import Scale, Tick, ticks_of_values
from ottla.spark.report.forms import short_number
from ottla.spark.report.listing import Field
from ottla.spark.report.plot import Frame, Key, figure, place, time_axis, twin, value_axis

HEIGHT: Final = 220
DOTTED: Final = 60
"""Lines of at most so many points show every point."""
UNITS: Final = {"%": " %", "s": " s"}
_ROLES: Final = ("group", "assignment")


def line_plot(facts: Mapping[str, Any], time: Scale, read: str) -> Markup:
    values, ticks = _values(facts["lines"])
    unit = UNITS.get(facts["unit"], "")
    across, left = value_axis(values, [Tick(each, short_number(each) + unit) for each in ticks])
    upright, below = time_axis(time)
    names = _classes(facts["lines"])
    paths = [_line(line, names[at], time, values) for at, line in enumerate(facts["lines"])]
    marks = joined([across, upright, *_spans(facts, time), *_marks(facts, time), _stretched(time, values, paths)])
    keys = [Key(_swatch(names[at]), line["name"]) for at, line in enumerate(facts["lines"])]
    keys += [Key(element("i", class_="swatch span"), _span_word(facts))] if facts["spans"] else []
    keys += [Key(element("i", class_="swatch mark"), "a new leader")] if facts.get("marks") else []
    return figure(
        facts,
        Frame(HEIGHT, marks, left, below),
        read=read + _left_out(facts),
        desc=_desc(facts),
        keys=keys,
        twin=_twin(facts),
    )


def _values(lines: Sequence[Mapping[str, Any]]) -> tuple[Scale, list[float]]:
    """From 0, but for lines that are all far above it, as epochs are."""
    found = [value for line in lines for _, value in line["points"]] or [0]
    low, high = min(found), max(found)
    return ticks_of_values(0 if low <= (high - low) * 2 or low < 10 else low, max(high, low + 1))


def _classes(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    others = [at for at, line in enumerate(lines) if line["role"] not in _ROLES]
    return [
        f"line h{others.index(at) % 8} dash{others.index(at) % 4}" if at in others else f"line {line['role']}"
        for at, line in enumerate(lines)
    ]


def _stretched(time: Scale, values: Scale, paths: Sequence[Markup]) -> Markup:
    box = f"0 {_short(-values.high)} {_short(time.length / 1000)} {_short(values.length)}"
    return element("svg", *paths, class_="lines", viewBox=box, preserveAspectRatio="none", width="100%", height="100%",
                   data_from=round(time.low), data_to=round(time.high))  # fmt: skip


def _line(line: Mapping[str, Any], classes: str, time: Scale, values: Scale) -> Markup:
    points = [(_short((ms - time.low) / 1000), _short(-value)) for ms, value in line["points"]]
    if not points:
        return NOTHING
    drawn = _steps(points) if line["step"] else "L".join(f"{x},{y}" for x, y in points)
    path = element("path", d=f"M{drawn}", class_=classes, data_name=line["name"])
    few = len(points) <= DOTTED and line["role"] not in _ROLES
    dots = "".join(f"M{x},{y}h0" for x, y in (points if few else points[-1:]))
    return joined([path, element("path", d=dots, class_=f"{classes} dots")])


def _steps(points: Sequence[tuple[str, str]]) -> str:
    """Along, then up or down."""
    (x, y), *others = points
    return f"{x},{y}" + "".join(f"H{x}V{y}" for x, y in others)


def _short(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def _swatch(classes: str) -> Markup:
    """A piece of the line."""
    path = element("path", d="M0,6H26", class_=classes)
    dot = element("path", d="M13,6h0", class_=f"{classes} dots")
    return element("svg", path, dot, class_="swatch", width="26", height="12", aria_hidden="true")


def _spans(facts: Mapping[str, Any], time: Scale) -> list[Markup]:
    return [
        element(
            "rect", element("title", each["name"]), class_="span", x=place(time.percent(each["from_ms"])), y="0",
            width=place(max(0.25, time.percent(each["to_ms"]) - time.percent(each["from_ms"]))), height="100%",
            data_from=each["from_ms"], data_to=each["to_ms"],
        )
        for each in facts["spans"]
    ]  # fmt: skip


def _marks(facts: Mapping[str, Any], time: Scale) -> list[Markup]:
    return [
        element(
            "line", element("title", each["name"]), class_="mark", x1=at, x2=at, y1="0", y2="100%", data_at=each["ms"]
        )
        for each in facts.get("marks", ())
        for at in [place(time.percent(each["ms"]))]
    ]


def _span_word(facts: Mapping[str, Any]) -> str:
    return "a rebalance" if facts["unit"] == "epoch" else "a redelivery storm"


def _left_out(facts: Mapping[str, Any]) -> str:
    what = "rebalances" if facts["unit"] == "epoch" else "lines"
    return f" {facts['left_out']:,} more {what} are not drawn." if facts["left_out"] else ""


# --- in words and numbers ---------------------------------------------------------------------------------------------


def _desc(facts: Mapping[str, Any]) -> str:
    unit = facts["unit"]
    told = [f"{line['name']}: {_reach(line['points'], unit)}" for line in facts["lines"] if line["points"]]
    spans = f"{len(facts['spans'])} spans are shaded." if facts["spans"] else ""
    return "; ".join(told) + ". " + spans


def _reach(points: Sequence[tuple[int, float]], unit: str) -> str:
    values = [value for _, value in points]
    return f"between {short_number(min(values))} and {short_number(max(values))} {unit}, at the end {short_number(values[-1])}"


def _twin(facts: Mapping[str, Any]) -> Markup:
    """A row for each moment, a column for each line."""
    by_time: dict[int, dict[str, Any]] = {}
    for at, line in enumerate(facts["lines"]):
        for ms, value in line["points"]:
            by_time.setdefault(ms, {"time": ms})[f"line{at}"] = value
    columns = [
        Field("time", "time", "time"),
        *(Field(f"line{at}", line["name"], "number") for at, line in enumerate(facts["lines"])),
    ]
    rows = [by_time[ms] for ms in sorted(by_time)]
    return twin(facts["id"], facts["title"], rows, len(rows), columns)
