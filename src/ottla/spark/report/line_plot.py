"""Lines over time: lag, rates, epochs. They differ in colour, dash and dots, and the legend has their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

from ottla.draw.forms import short_number, shortened
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.phrases import duration, plural
from ottla.spark.report.axes import Scale, Tick, ticks_of_values
from ottla.spark.report.cards import anchor
from ottla.spark.report.html_table import Field
from ottla.spark.report.plot import Frame, Key, figure, percent_text, time_axis, twin, value_axis
from ottla.spark.report.thin import gap_ms

HEIGHTS: Final = {"epoch": 170}
HEIGHT: Final = 210
ROOM: Final = 0.05
"""Margin above the highest tick and below the lowest, so that lines on them are not cut off."""
DOTTED: Final = 60
"""Lines of at most so many points show every point."""
SENTENCES: Final = 6
UNITS: Final = {"%": " %", "s": " s", "ms": " ms"}
_WIDE: Final = ("group", "assignment")

Facts = Mapping[str, Any]
Points = Sequence[tuple[int, Any]]
"""Times and values; None means that the value is unknown from then on."""


def line_plot(facts: Facts, time: Scale, read: str) -> Markup:
    values, ticks = _values(facts["lines"])
    unit = UNITS.get(facts["unit"], "")
    across, left = value_axis(values, [Tick(each, short_number(each) + unit) for each in ticks])
    upright, below = time_axis(time)
    classes = _classes(facts["lines"])
    paths = [_line(line, name, time) for line, name in zip(facts["lines"], classes, strict=True)]
    marks = joined(
        [
            across,
            upright,
            *_gaps(facts, time),
            *_spans(facts, time),
            *_marks(facts, time),
            _stretched(time, values, paths),
        ]
    )
    frame = Frame(HEIGHTS.get(facts["unit"], HEIGHT), marks, left, below, above=_incidents(facts, time))
    read = f"{read} {_left_out(facts)}".strip()
    return figure(facts, frame, read=read, desc=_told(facts), keys=_keys(facts, classes), twin=_twin(facts))


def _values(lines: Sequence[Facts]) -> tuple[Scale, list[float]]:
    """The scale begins at 0, unless all lines are far above it, as epochs may be."""
    found = [value for line in lines for _, value in line["points"] if value is not None] or [0]
    low, high = min(found), max(found)
    is_near_zero = low <= (high - low) * 2 or low < 10
    scale, ticks = ticks_of_values(0 if is_near_zero else low, max(high, low + 1))
    room = ROOM * scale.length
    return Scale(scale.low - room, scale.high + room), ticks


# --- what is drawn ----------------------------------------------------------------------------------------------------


def _classes(lines: Sequence[Facts]) -> list[str]:
    hues = iter(range(len(lines)))
    found = []
    for line in lines:
        hue = None if line["role"] in _WIDE else next(hues)
        found.append(f"line {line['role']}" if hue is None else f"line h{hue % 8} dash{hue % 4}")
    return found


def _stretched(time: Scale, values: Scale, paths: Sequence[Markup]) -> Markup:
    box = f"0 {_short(-values.high)} {_short(time.length / 1000)} {_short(values.length)}"
    whole = {"width": "100%", "height": "100%"}
    return element("svg", *paths, class_="lines", viewBox=box, preserveAspectRatio="none", **whole)


def _line(line: Facts, classes: str, time: Scale) -> Markup:
    runs = list(_runs(line["points"], has_steps=line["step"]))
    if not runs:
        return NOTHING
    drawn = "".join(_steps(run, time) if line["step"] else _joined(run, time) for run in runs)
    path = element("path", d=drawn, class_=classes, data_name=shortened(line["name"]))
    if line["role"] in _WIDE:
        return path
    points = [point for run in runs for point in run]
    dots = "".join(f"M{_at(point, time)}h0" for point in (points if len(points) <= DOTTED else points[-1:]))
    return joined([path, element("path", d=dots, class_=f"{classes} dots")])


def _at(point: tuple[int, float], time: Scale) -> str:
    return f"{_short((point[0] - time.low) / 1000)},{_short(-point[1])}"


def _short(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def _joined(run: Points, time: Scale) -> str:
    return "M" + "L".join(_at(point, time) for point in run)


def _steps(points: Points, time: Scale) -> str:
    """A path that goes horizontally, then up or down."""
    places = [_at(point, time) for point in points]
    return f"M{places[0]}" + "".join("H{}V{}".format(*each.split(",")) for each in places[1:])


def _runs(points: Points, *, has_steps: bool) -> Iterator[Points]:
    """The points, split at gaps. Steps have no gaps: a value holds until the next one."""
    times = [ms for ms, _ in points]
    limit = inf if has_steps else gap_ms(times)
    run: list[tuple[int, float]] = []
    for at, (ms, value) in enumerate(points):
        if value is not None:
            run.append((ms, value))
        if run and (value is None or at + 1 == len(points) or times[at + 1] - ms > limit):
            yield run
            run = []


def _spans(facts: Facts, time: Scale) -> Iterator[Markup]:
    for each in facts["spans"]:
        yield _box(each, time, "span", each["name"])


def _gaps(facts: Facts, time: Scale) -> Iterator[Markup]:
    for each in facts.get("gaps", ()):
        title = f"No samples for {duration(each['to_ms'] - each['from_ms'])}"
        yield _box(each, time, "gap", title)


def _box(each: Facts, time: Scale, classes: str, title: str) -> Markup:
    """A rectangle from one time to another."""
    left, width = _extent(each, time)
    ends = {"data_from": each["from_ms"], "data_to": each["to_ms"]}
    return element(
        "rect", element("title", title), class_=classes, x=left, y="0", width=width, height="100%", **ends
    )  # fmt: skip


def _extent(each: Facts, time: Scale) -> tuple[str, str]:
    """Where something begins, and how wide it is."""
    left, right = (min(100.0, max(0.0, time.percent(each[end]))) for end in ("from_ms", "to_ms"))
    return percent_text(left), percent_text(max(0.25, right - left))


def _marks(facts: Facts, time: Scale) -> Iterator[Markup]:
    for each in facts.get("marks", ()):
        at = percent_text(time.percent(each["ms"]))
        title = element("title", each["name"])
        yield element("line", title, class_="mark", x1=at, x2=at, y1="0", y2="100%", data_at=each["ms"])


def _incidents(facts: Facts, time: Scale) -> Markup:
    """A strip along the upper edge; each incident leads to its finding."""
    links = []
    for each in facts.get("incidents", ()):
        sentences = each["sentences"]
        told = sentences[:SENTENCES] + [f"and {len(sentences) - SENTENCES} more"] * (len(sentences) > SENTENCES)
        left, width = _extent(each, time)
        links.append(
            element(
                "a",
                class_=f"incident {each['severity']}",
                href=f"#{anchor({'id': each['finding']})}",
                style=f"left:{left};width:{width}",
                title="\n".join(told),
                aria_label=f"{each['severity']}: {'; '.join(told)}",
                data_from=each["from_ms"],
                data_to=each["to_ms"],
            )
        )
    return element("div", *links, class_="incidents") if links else NOTHING


def _keys(facts: Facts, classes: Sequence[str]) -> list[Key]:
    keys = [Key(_swatch(name), shortened(line["name"])) for line, name in zip(facts["lines"], classes, strict=True)]
    if facts["spans"]:
        word = "a rebalance" if facts["unit"] == "epoch" else "a redelivery storm"
        keys.append(Key(element("i", class_="swatch span"), word))
    seen = {each["severity"] for each in facts.get("incidents", ())}
    keys += [
        Key(element("i", class_=f"swatch incident {severity}"), f"{severity} incident")
        for severity in ("critical", "warning")
        if severity in seen
    ]
    if facts.get("gaps"):
        keys.append(Key(element("i", class_="swatch gap"), "no samples"))
    if facts.get("marks"):
        keys.append(Key(element("i", class_="swatch mark"), "a new leader"))
    return keys


def _swatch(classes: str) -> Markup:
    """A piece of the line, for the legend."""
    parts = [element("path", d="M0,6H26", class_=classes)]
    if not any(role in classes.split() for role in _WIDE):
        parts.append(element("path", d="M13,6h0", class_=f"{classes} dots"))
    return element("svg", *parts, class_="swatch", width="26", height="12", aria_hidden="true")


def _left_out(facts: Facts) -> str:
    what = "rebalances" if facts["unit"] == "epoch" else "lines"
    return f"{facts['left_out']:,} more {what} are not drawn." if facts["left_out"] else ""


def _told(facts: Facts) -> str:
    told = [f"{line['name']}: {_reach(line['points'], facts['unit'])}" for line in facts["lines"] if line["points"]]
    spans = f" {len(facts['spans'])} spans are shaded." if facts["spans"] else ""
    gaps = f" {plural(len(facts['gaps']), 'gap')} without samples." if facts.get("gaps") else ""
    return "; ".join(told) + "." + spans + gaps


def _reach(points: Points, unit: str) -> str:
    values = [value for _, value in points if value is not None]
    low, high, last = map(short_number, (min(values), max(values), values[-1]))
    return f"between {low} and {high} {unit}, {last} at the end"


def _twin(facts: Facts) -> Markup:
    """A table with a row for each time and a column for each line."""
    by_time: dict[int, dict[str, Any]] = {}
    columns = [Field("time", "time", "time")]
    for line in facts["lines"]:
        columns.append(Field(f"line {len(columns)}", shortened(line["name"]), "number"))
        for ms, value in line["points"]:
            if value is None:
                continue
            by_time.setdefault(ms, {"time": ms})[columns[-1].name] = value
    rows = [by_time[ms] for ms in sorted(by_time)]
    return twin(facts["id"], facts["title"], rows, columns)
