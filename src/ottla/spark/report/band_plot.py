"""Rows of bands over time: which process had which task, and when what was wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.wording import duration
from ottla.spark.report.axes import Scale
from ottla.spark.report.forms import iso
from ottla.spark.report.listing import fields
from ottla.spark.report.plot import Frame, Key, bands, figure, place, time_axis, twin

ROW: Final = 24
BAND: Final = 18
NARROWEST: Final = 0.3  # percent
LETTERED: Final = 2.5  # percent
SIGNS: Final = {"critical": "▲", "warning": "●", "notice": "○"}
ROLES: Final = {"active": "", "standby": "s", "warmup": "w"}


def _letter(number: int) -> str:
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


# --- tasks --------------------------------------------------------------------------------------------------------------


def heat_plot(facts: Mapping[str, Any], time: Scale, read: str) -> Markup:
    """Tasks from above to below; colour and letter say the process, hatching a warm-up, a thin band a standby."""
    upright, below = time_axis(time)
    letters = {process: _letter(at) for at, process in enumerate(facts["processes"])}
    hues = {process: at % 8 for at, process in enumerate(facts["processes"])}
    cells = [
        _cell(facts["id"], cell, at, letters, hues, time)
        for at, row in enumerate(facts["rows"])
        for cell in row["cells"]
    ]
    height = ROW * len(facts["rows"])
    frame = Frame(
        height,
        joined([_hatching(facts["id"]), upright, *cells]),
        bands([row["name"] for row in facts["rows"]], ROW),
        below,
        wide=True,
    )
    keys = [
        Key(element("i", class_=f"swatch h{hues[name]}"), f"{letters[name]}: {name}")
        for name in facts["processes"][:12]
    ]
    keys += [Key(element("i", class_="swatch warmup"), "hatched: warm-up, a copy that catches up before it takes over")]
    if any(cell["role"] == "standby" for row in facts["rows"] for cell in row["cells"]):
        keys.append(Key(element("i", class_="swatch standby"), "thin: standby, a copy that waits"))
    more = f" {facts['left_out']:,} more tasks are not drawn." if facts["left_out"] else ""
    return figure(facts, frame, read=read + more, desc=_told(facts), keys=keys, twin=_tasks_twin(facts))


def _cell(
    name: str, cell: Mapping[str, Any], row: int, letters: Mapping[str, str], hues: Mapping[str, int], time: Scale
) -> Markup:
    left, width = _reach(cell, time)
    role = cell["role"] if cell["role"] in ROLES else "active"
    is_thin = role == "standby"
    top, height = row * ROW + (ROW - (BAND // 3 if is_thin else BAND)) // 2, BAND // 3 if is_thin else BAND
    shape = {"x": place(left), "y": top, "width": place(width), "height": height, "rx": 2}
    ends = {"data_from": cell["from_ms"], "data_to": cell["to_ms"]}
    title = element("title", f"{cell['task']}, {role}: {cell['process']}, {_clock(cell)}")
    parts = [element("rect", title, class_=f"band {role} h{hues[cell['process']]}", **shape, **ends)]
    if role == "warmup":
        parts.append(element("rect", class_="hatch", fill=f"url(#{name}-hatch)", **shape, **ends))
    elif width >= LETTERED and not is_thin:
        text = element(
            "text", letters[cell["process"]], class_="letter", x=place(left), dx=5, y=top + 13, data_at=cell["from_ms"]
        )
        parts.append(text)
    return joined(parts)


def _hatching(name: str) -> Markup:
    line = element("path", d="M-2,2L2,-2M0,8L8,0M6,10L10,6", class_="hatching")
    return element(
        "defs", element("pattern", line, id=f"{name}-hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    )


def _reach(band: Mapping[str, Any], time: Scale) -> tuple[float, float]:
    """Where a band begins and how wide it is; nothing is too short to be seen."""
    left = min(max(time.percent(band["from_ms"]), 0), 100 - NARROWEST)
    return left, max(min(time.percent(band["to_ms"]), 100) - left, NARROWEST)


def _clock(band: Mapping[str, Any]) -> str:
    return f"{iso(band['from_ms'])[11:19]} to {iso(band['to_ms'])[11:19]} UTC ({duration(band['to_ms'] - band['from_ms'])})"


def _told(facts: Mapping[str, Any]) -> str:
    cells = [cell for row in facts["rows"] for cell in row["cells"]]
    warm = sum(cell["role"] == "warmup" for cell in cells)
    return (
        f"{len(facts['rows'])} tasks, {len(facts['processes'])} processes, {len(cells)} bands, {warm} of them warm-ups."
    )


def _tasks_twin(facts: Mapping[str, Any]) -> Markup:
    cells = [cell for row in facts["rows"] for cell in row["cells"]]
    columns = fields("task:text", "role:text", "process:id", "member:id", "from_ms:time:from", "to_ms:time:to")
    return twin(facts["id"], facts["title"], cells, len(cells), columns)


# --- findings -----------------------------------------------------------------------------------------------------------


def findings_plot(facts: Mapping[str, Any], time: Scale, read: str) -> Markup:
    upright, below = time_axis(time)
    rows = facts["rows"]
    shapes = [_finding(row, at, time) for at, row in enumerate(rows)]
    names = [
        element(
            "a",
            element("b", SIGNS[row["severity"]], class_=row["severity"]),
            f" {row['name']}",
            href=row["href"],
            title=row["name"],
            tabindex="-1",
        )
        for row in rows
    ]
    keys = [
        Key(element("i", class_=f"swatch {name}"), f"{sign} {name}")
        for name, sign in SIGNS.items()
        if any(row["severity"] == name for row in rows)
    ]
    columns = fields("name:text:finding", "severity:text", "from_ms:time:from", "to_ms:time:to", "state:text")
    frame = Frame(ROW * len(rows), joined([upright, *shapes]), bands(names, ROW), below, wide=True)
    desc = f"{len(rows)} findings; " + "; ".join(f"{row['name']}: {_clock(row)}" for row in rows[:10])
    return figure(
        facts, frame, read=read, desc=desc, keys=keys, twin=twin(facts["id"], facts["title"], rows, len(rows), columns)
    )


def _finding(row: Mapping[str, Any], at: int, time: Scale) -> Markup:
    left, width = _reach(row, time)
    title = element("title", f"{row['name']}: {_clock(row)}, {row['state']}")
    ends = {"data_from": row["from_ms"], "data_to": row["to_ms"]}
    middle = at * ROW + ROW / 2
    bar = element(
        "rect",
        title,
        class_=f"band {row['severity']}",
        x=place(left),
        y=f"{middle - 7:g}",
        width=place(width),
        height=14,
        rx=3,
        **ends,
    )
    arrow = (
        element("text", "▸", class_="still", x="100%", dx=-10, y=f"{middle + 5:g}")
        if row["state"] == "open"
        else NOTHING
    )
    return joined([bar, arrow])
