"""Parts of pages: tables, lists of facts, badges, links to other pages, small plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple
from urllib.parse import urlencode

from ottla.console.addresses import href
from ottla.draw.forms import UNKNOWN, moment, number, short_number
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.health.phrases import duration, size
from ottla.observe.series_history import Point

__all__ = [
    "Column",
    "absent",
    "badge",
    "byte_size",
    "code",
    "command",
    "facts",
    "group_link",
    "link",
    "node_link",
    "nothing",
    "offset",
    "section",
    "since",
    "sparkline",
    "table",
    "topic_link",
    "with_query",
]

NARROW_COLUMNS: Final = 3
"""A table with no more is only as wide as it has to be."""
COMMA: Final = joined([",", element("wbr")])
"""A line may break after it."""
SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 24
SPARK_POINTS: Final = 60

Cell = str | int | float | None


class Column(NamedTuple):
    title: str
    is_number: bool = False
    about: str = ""
    """More about it, shown on focus."""
    is_optional: bool = False
    """Whether it is left out if no row has a value in it."""
    is_short: bool = False
    """Whether its values stay on one line."""
    is_named: bool = False
    """Whether cards begin with its title: a number alone would not tell what the card is about."""
    is_detail: bool = False
    """Whether cards show it only on demand. The others are four at most, beside the first."""

    @property
    def style(self) -> str | None:
        looks = "num" if self.is_number else "short" if self.is_short else ""
        return f"{looks} detail".strip() if self.is_detail else looks or None


def numbers(*titles: str, are_details: bool = False) -> tuple[Column, ...]:
    return tuple(Column(each, is_number=True, is_detail=are_details) for each in titles)


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], note: str = "") -> Markup:
    """A table whose first column names the row. Narrow screens show each row as a card."""
    lines = list(rows)
    used = [at for at, each in enumerate(columns) if not each.is_optional or any(_is_known(line[at]) for line in lines)]
    shown = [columns[at] for at in used]
    has_details = any(each.is_detail for each in shown)
    head = element("thead", element("tr", *map(_heading, shown)))
    body = element("tbody", *(_row(shown, [line[at] for at in used]) for line in lines))
    title = element("caption", caption, " ", element("small", note) if note else None)
    inner = element("table", title, head, body, class_="cards" if len(shown) > NARROW_COLUMNS else "cards narrow")
    switch = element("details", element("summary", "All fields"), class_="fields") if has_details else None
    return element("div", switch, inner, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _heading(column: Column) -> Markup:
    return element("th", column.title, scope="col", class_=column.style, title=column.about or None)


def _row(columns: Sequence[Column], row: Sequence[Cell]) -> Markup:
    first, *others = row
    cells = [
        element("td", _cell(value), data_label=column.title, class_=column.style)
        for column, value in zip(columns[1:], others, strict=True)
    ]
    label = columns[0].title if columns[0].is_named else None
    return element("tr", element("th", _cell(first), scope="row", data_label=label, class_=columns[0].style), *cells)


def _is_known(value: Cell) -> bool:
    return value is not None and value not in ("", " ")


def _cell(value: Cell) -> Markup:
    if value is None or value == "":
        return UNKNOWN
    if value == " ":
        return NOTHING
    return escaped(value) if isinstance(value, str) else number(value)


def section(title: str, *content: str, anchor: str = "", note: str = "") -> Markup:
    name = anchor or "".join(each if each.isalnum() else "-" for each in title.lower())
    heading = element("h2", title, element("small", note) if note else None, id=f"{name}-title")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def facts(pairs: Mapping[str, Cell]) -> Markup:
    """Names and values side by side."""
    return element("dl", *(_fact(name, value) for name, value in pairs.items()), class_="evidence")


def _fact(name: str, value: Cell) -> Markup:
    return element("div", element("dt", name), element("dd", _cell(value)))


def badge(text: str, kind: str = "") -> Markup:
    return element("span", text, class_=f"badge {kind}".strip())


def nothing(text: str, example: str = "") -> Markup:
    """An empty state: what is so, and the command that changes it."""
    return element("p", text, joined([" ", code(example)]) if example else None, class_="nothing")


def absent(what: str) -> Markup:
    """Where there is nothing, which is known; cards leave it out."""
    return element("span", "–", class_="unknown absent", title=what)


def code(text: str) -> Markup:
    return element("code", text)


def command(text: str) -> Markup:
    """A command to copy. Its lines break between words and after commas, never within an option."""
    words = (joined(word.split(","), COMMA) for word in text.split(" "))
    return element("code", joined((element("span", word) for word in words), " "), class_="command", data_copy=text)


def offset(value: int | None) -> Markup:
    """Offsets and epochs are never shortened."""
    return UNKNOWN if value is None else escaped(f"{value:,}")


def byte_size(value: int | None) -> Markup:
    return UNKNOWN if value is None else element("span", size(value), title=f"{value:,} bytes")


def since(at_ms: int | None, now_ms: int) -> Markup:
    """A time, and how long ago that was."""
    return UNKNOWN if at_ms is None else joined([moment(at_ms), f" ({duration(now_ms - at_ms)} ago)"])


# --- links ------------------------------------------------------------------------------------------------------------


def link(text: str, *path: object, **query: object) -> Markup:
    return element("a", text, href=with_query(href(*path), **query))


def with_query(path: str, **query: object) -> str:
    wanted = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(wanted)}" if wanted else path


def topic_link(name: str) -> Markup:
    return link(name, "topics", name)


def group_link(name: str) -> Markup:
    return link(name, "groups", name)


def node_link(node_id: int | None) -> Markup:
    return UNKNOWN if node_id is None or node_id < 0 else link(str(node_id), "nodes", node_id)


# --- small plots ------------------------------------------------------------------------------------------------------


def sparkline(points: Sequence[Point], what: str) -> Markup:
    """A line of the last hour with its lowest and highest value in words."""
    if len(points) < 2:
        return element("span", "–", class_="unknown", title="not enough history yet; it starts with this console")
    shown = _thinned(points)
    low, high = min(each.value for each in shown), max(each.value for each in shown)
    begin, end = shown[0].at_ms, shown[-1].at_ms
    path = " ".join(
        f"{'M' if at == 0 else 'L'}{_across(each.at_ms, begin, end):.1f},{_up(each.value, low, high):.1f}"
        for at, each in enumerate(shown)
    )
    told = f"{what}: from {short_number(low)} to {short_number(high)} in {duration(end - begin)}"
    line = element("path", d=path, class_="line")
    return element(
        "svg", element("title", told), line, class_="spark", viewBox=f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}", role="img",
        width=SPARK_WIDTH, height=SPARK_HEIGHT,
    )  # fmt: skip


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    """Of each stretch of time the first and the last point, the lowest and the highest: peaks and plateaus stay."""
    if len(points) <= SPARK_POINTS:
        return points
    begin, length = points[0].at_ms, 1 + points[-1].at_ms - points[0].at_ms
    stretches = groupby(points, key=lambda each: SPARK_POINTS * (each.at_ms - begin) // length)
    return [point for _, stretch in stretches for point in _ends_and_peaks(list(stretch))]


def _ends_and_peaks(points: Sequence[Point]) -> list[Point]:
    value = attrgetter("value")
    return sorted({points[0], min(points, key=value), max(points, key=value), points[-1]})


def _across(at_ms: int, begin: int, end: int) -> float:
    return 1 + (SPARK_WIDTH - 2) * (at_ms - begin) / max(1, end - begin)


def _up(value: float, low: float, high: float) -> float:
    middle = SPARK_HEIGHT / 2
    return middle if high == low else SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * (value - low) / (high - low)


def more(next_name: str | None, path: str, query: Mapping[str, str]) -> Markup:
    """The link to the rest of a list."""
    if next_name is None:
        return NOTHING
    return element("p", element("a", "More", href=with_query(path, **{**query, "after": next_name}), rel="next"))
