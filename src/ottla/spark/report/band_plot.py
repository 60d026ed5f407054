"""Rows of bands over time: the process of each task, and the times of findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.draw.forms import iso, shortened
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.phrases import duration
from ottla.spark.report.axes import Scale
from ottla.spark.report.html_table import fields
from ottla.spark.report.plot import Frame, Key, bands, figure, percent_text, time_axis, twin

ROW: Final = 26
NARROWEST: Final = 0.3  # percent
LETTERED: Final = 2.5  # percent; narrower bands have no room for a letter
COPIES: Final = ("standby", "warmup")
HUES: Final = 8
LEGEND: Final = 16
SIGNS: Final = {"critical": "▲", "warning": "●", "notice": "○"}

Facts = Mapping[str, Any]


def _reach(band: Facts, time: Scale) -> tuple[float, float]:
    """The start and the width of a band, which is never too narrow to be seen."""
    left = min(max(time.percent(band["from_ms"]), 0.0), 100 - NARROWEST)
    return left, max(min(time.percent(band["to_ms"]), 100.0) - left, NARROWEST)


def _clock(band: Facts) -> str:
    ends = " to ".join(iso(band[end])[11:19] for end in ("from_ms", "to_ms"))
    return f"{ends} UTC ({duration(band['to_ms'] - band['from_ms'])})"


# --- tasks ------------------------------------------------------------------------------------------------------------


class _BandStyle(NamedTuple):
    """How the bands of one figure are drawn."""

    figure: str
    numbers: Mapping[str, int]
    """Process -> its number in the legend."""
    names: Mapping[str, str]
    """Process -> its name, where that is known."""
    has_copies: bool

    def name(self, process: str) -> str:
        short = shortened(process)
        return f"{self.names[process]} ({short})" if process in self.names else short

    def letter(self, process: str) -> str:
        number = self.numbers[process]
        return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")

    def lane(self, role: str) -> tuple[int, int]:
        """Top and height within the row: standbys and warm-ups are below active tasks."""
        if not self.has_copies:
            return 4, 18
        return (17, 8) if role in COPIES else (2, 14)


def heat_plot(facts: Facts, time: Scale, read: str) -> Markup:
    """A row for each task; colour and letter show the process, hatching a warm-up."""
    roles = {cell["role"] for row in facts["rows"] for cell in row["cells"]}
    numbers = {process: at for at, process in enumerate(facts["processes"])}
    style = _BandStyle(facts["id"], numbers, facts["names"], has_copies=not roles.isdisjoint(COPIES))
    upright, below = time_axis(time)
    cells = [_cell(cell, at * ROW, style, time) for at, row in enumerate(facts["rows"]) for cell in row["cells"]]
    marks = joined([_patterns(facts["id"]), upright, *cells])
    frame = Frame(ROW * len(facts["rows"]), marks, bands([row["name"] for row in facts["rows"]], ROW), below, wide=True)
    more = f" {facts['left_out']:,} more tasks are not drawn." if facts["left_out"] else ""
    more += f" {facts['cells_left_out']:,} short stays are not drawn." if facts["cells_left_out"] else ""
    return figure(facts, frame, read=read + more, desc=_told(facts), keys=_keys(style, roles), twin=_tasks_twin(facts))


def _cell(cell: Facts, top: int, style: _BandStyle, time: Scale) -> Markup:
    left, width = _reach(cell, time)
    offset, height = style.lane(cell["role"])
    shape = {
        "x": percent_text(left),
        "y": str(top + offset),
        "width": percent_text(width),
        "height": str(height),
        "rx": "2",
    }
    ends = {"data_from": str(cell["from_ms"]), "data_to": str(cell["to_ms"])}
    title = element("title", f"{cell['task']}, {cell['role']}: {style.name(cell['process'])}, {_clock(cell)}")
    number = style.numbers[cell["process"]]
    band = element("rect", title, class_=f"band {cell['role']} h{number % HUES}", **shape, **ends)
    pattern = "hatch" if cell["role"] == "warmup" else "dotted" if number >= HUES else None
    over = (
        element("rect", class_="over", fill=f"url(#{style.figure}-{pattern})", **shape, **ends) if pattern else NOTHING
    )
    has_letter = cell["role"] not in COPIES and width >= LETTERED
    return joined([band, over, _letter(cell, left, top + offset + height - 3, style) if has_letter else NOTHING])


def _letter(cell: Facts, left: float, y: int, style: _BandStyle) -> Markup:
    return element(
        "text", style.letter(cell["process"]), class_="letter", x=percent_text(left), dx=5, y=y, data_at=cell["from_ms"]
    )


def _patterns(name: str) -> Markup:
    lines = element("path", d="M-2,2L2,-2M0,8L8,0M6,10L10,6", class_="hatching")
    dots = element("path", d="M2,2h0M6,6h0", class_="dotting")
    size = {"width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
    hatch, dotted = (
        element("pattern", inner, id=f"{name}-{kind}", **size) for kind, inner in (("hatch", lines), ("dotted", dots))
    )
    return element("defs", hatch, dotted)


def _keys(style: _BandStyle, roles: set[str]) -> Iterator[Key]:
    for process, number in list(style.numbers.items())[:LEGEND]:
        yield Key(element("i", class_=f"swatch h{number % HUES}"), f"{style.letter(process)}: {style.name(process)}")
    if "warmup" in roles:
        yield Key(element("i", class_="swatch warmup"), "hatched: warm-up, a copy that is catching up")
    if "standby" in roles:
        yield Key(element("i", class_="swatch standby"), "thin: standby copy")


def _told(facts: Facts) -> str:
    cells = [cell for row in facts["rows"] for cell in row["cells"]]
    warm = sum(cell["role"] == "warmup" for cell in cells)
    return (
        f"{len(facts['rows'])} tasks, {len(facts['processes'])} processes, {len(cells)} bands, {warm} of them warm-ups."
    )


def _tasks_twin(facts: Facts) -> Markup:
    cells = [cell for row in facts["rows"] for cell in row["cells"]]
    columns = fields("task:text", "role:text", "process:id", "member:id", "from_ms:time:from", "to_ms:time:to")
    return twin(facts["id"], facts["title"], cells, columns)


# --- findings ---------------------------------------------------------------------------------------------------------


def findings_plot(facts: Facts, time: Scale, read: str) -> Markup:
    rows = facts["rows"]
    upright, below = time_axis(time)
    shapes = [_finding(row, at * ROW + ROW // 2, time) for at, row in enumerate(rows)]
    frame = Frame(ROW * len(rows), joined([upright, *shapes]), bands(map(_name, rows), ROW), below, wide=True)
    desc = f"{len(rows)} findings; " + "; ".join(f"{row['name']}: {_clock(row)}" for row in rows[:10])
    used = [name for name in SIGNS if any(row["severity"] == name for row in rows)]
    keys = [Key(element("i", class_=f"swatch {name}"), f"{SIGNS[name]} {name}") for name in used]
    columns = fields("name:text:finding", "severity:text", "from_ms:time:from", "to_ms:time:to", "state:text")
    return figure(facts, frame, read=read, desc=desc, keys=keys, twin=twin(facts["id"], facts["title"], rows, columns))


def _name(row: Facts) -> Markup:
    sign = element("b", SIGNS[row["severity"]], class_=row["severity"])
    return element("a", sign, f" {row['name']}", href=row["href"], title=row["name"], tabindex="-1")


def _finding(row: Facts, middle: int, time: Scale) -> Markup:
    left, width = _reach(row, time)
    shape = {"x": percent_text(left), "y": str(middle - 7), "width": percent_text(width), "height": "14", "rx": "3"}
    ends = {"data_from": str(row["from_ms"]), "data_to": str(row["to_ms"])}
    title = element("title", f"{row['name']}: {_clock(row)}, {row['state']}")
    bar = element("rect", title, class_=f"band {row['severity']}", **shape, **ends)
    is_open = row["state"] == "open"
    return joined([bar, element("text", "▸", class_="still", x="100%", dx=-12, y=middle + 5) if is_open else NOTHING])
