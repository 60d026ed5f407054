"""Plots without a time axis: durations of rebalances, and numbers of deliveries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ottla.draw.forms import number, short_number
from ottla.draw.markup import Markup, element, joined
from ottla.health.phrases import duration
from ottla.spark.report.axes import Scale, ticks_of_durations
from ottla.spark.report.html_table import fields
from ottla.spark.report.plot import Frame, Key, bands, captioned, figure, level_axis, percent_text, twin

ROW: Final = 26
ENDS: Final = {
    "converged": (
        "M-4.5,0A4.5,4.5 0 1 1 4.5,0A4.5,4.5 0 1 1 -4.5,0z",
        "converged: every member reached its target assignment",
    ),
    "superseded": ("M-4,-4L4,4M-4,4L4,-4", "superseded: the next one began first"),
    "emptied": ("M-4,0A4,4 0 1 1 4,0A4,4 0 1 1 -4,0z", "emptied: the last member left"),
    "open": ("M0,-5L5,0L0,5L-5,0z", "open: still running at the end"),
}
"""How a rebalance ended -> the shape of its dot, and its meaning."""

Facts = Mapping[str, Any]


def strip_plot(facts: Facts, read: str) -> Markup:
    """A row for each group, a dot for each rebalance, from short to long."""
    rows = facts["rows"]
    dots = [dot for row in rows for dot in row["dots"]]
    taken = [dot["duration_ms"] for dot in dots] or [1]
    scale, ticks = ticks_of_durations(min(taken), max(taken))
    upright, below = level_axis(scale, ticks)
    shapes = [_dot(dot, at, scale) for at, row in enumerate(rows) for dot in row["dots"]]
    used = [name for name in ENDS if any(dot["ended_by"] == name for dot in dots)]
    defs = element("defs", *(element("path", d=ENDS[name][0], id=f"dot-{name}") for name in used))
    marks = joined([defs, upright, *map(_lane, range(len(rows))), *shapes])
    frame = Frame(ROW * len(rows), marks, bands([row["name"] for row in rows], ROW), below, wide=True)
    unknown = f" Duration unknown for {facts['unknown']:,}." if facts["unknown"] else ""
    keys = [_key(name) for name in used]
    if any(not dot["is_running"] for dot in dots):
        keys.append(Key(element("i", class_="swatch pale"), "pale: the group was starting or stopping"))
    return figure(facts, frame, read=read + unknown, desc=_told(facts), keys=keys, twin=_strip_twin(facts))


def _lane(row: int) -> Markup:
    middle = row * ROW + ROW // 2
    return element("line", x1="0", x2="100%", y1=middle, y2=middle, class_="lane")


def _dot(dot: Facts, row: int, scale: Scale) -> Markup:
    at = percent_text(scale.percent(math.log10(max(dot["duration_ms"], 1))))
    many = f", {dot['count']} times" if dot["count"] > 1 else ""
    when = "" if dot["is_running"] else ", while the group was starting or stopping"
    title = element("title", f"{duration(dot['duration_ms'])}, {dot['ended_by']}{many}{when}")
    name = dot["ended_by"]
    classes = f"dot {name}" if dot["is_running"] else f"dot {name} pale"
    return element("use", title, href=f"#dot-{name}", x=at, y=row * ROW + ROW // 2, class_=classes)


def _key(name: str) -> Key:
    form = element("path", d=ENDS[name][0], class_=f"dot {name}", transform="translate(7 7)")
    return Key(element("svg", form, class_="swatch", width=14, height=14, aria_hidden="true"), ENDS[name][1])


def _told(facts: Facts) -> str:
    longest = {row["name"]: max(dot["duration_ms"] for dot in row["dots"]) for row in facts["rows"] if row["dots"]}
    return "; ".join(f"{name}: at most {duration(ms)}" for name, ms in longest.items()) + "."


def _strip_twin(facts: Facts) -> Markup:
    rows = [{"group": row["name"], **dot} for row in facts["rows"] for dot in row["dots"]]
    columns = fields("group:text", "duration_ms:ms:took", "ended_by:text:ended by", "is_running:yes:group was running",
                     "count:number:how many")  # fmt: skip
    return twin(facts["id"], facts["title"], rows, columns)


# --- histograms -------------------------------------------------------------------------------------------------------


def bar_plot(facts: Facts, read: str) -> Markup:
    """For each group a bar for first deliveries, one for second deliveries, and so on, with their numbers."""
    blocks = [_block(f"{facts['id']}-{at}", row) for at, row in enumerate(facts["rows"])]
    rows = [{"group": row["name"], **bar} for row in facts["rows"] for bar in row["bars"]]
    columns = fields("group:text", "name:text:delivery", "value:number:how many")
    more = f" {facts['left_out']:,} more groups are in the table below." if facts["left_out"] else ""
    return captioned(facts, read + more, joined(blocks), twin(facts["id"], facts["title"], rows, columns))


def _block(name: str, row: Facts) -> Markup:
    bars = row["bars"]
    total = sum(bar["value"] for bar in bars)
    most = max((bar["value"] for bar in bars), default=0) or 1
    title = element("title", f"{row['name']}: deliveries", id=f"{name}-title")
    told = ", ".join(f"{bar['name']}: {short_number(bar['value'])}" for bar in bars)
    desc = element("desc", told, id=f"{name}-desc")
    shapes = [_bar(bar, at, most) for at, bar in enumerate(bars)]
    labels = f"{name}-title {name}-desc"
    svg = element("svg", title, desc, *shapes, role="img", aria_labelledby=labels, width="100%", height=ROW * len(bars))
    parts = [
        element("div", bands([bar["name"] for bar in bars], ROW), class_="left", aria_hidden="true"),
        element("div", svg, class_="area"),
        element("div", bands([_value(bar["value"], total) for bar in bars], ROW), class_="values", aria_hidden="true"),
    ]
    return joined([element("p", row["name"], class_="of"), element("div", *parts, class_="frame barred")])


def _value(value: int, total: int) -> Markup:
    share = 100 * value / total if total else 0
    told = "0 %" if not value else "under 0.1 %" if share < 0.1 else f"{share:.1f} %"
    return joined([number(value), " ", element("small", told)])


def _bar(bar: Facts, at: int, most: int) -> Markup:
    width = percent_text(max(100 * bar["value"] / most, 0.4 if bar["value"] else 0))
    title = element("title", f"{bar['name']}: {bar['value']:,}")
    return element(
        "rect", title, class_=f"bar step{min(at, 4)}", x=0, y=at * ROW + 4, width=width, height=ROW - 8, rx=2
    )
