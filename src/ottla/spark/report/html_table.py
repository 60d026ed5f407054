"""Tables on the page: the first rows, and a link to a CSV file with the others."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ottla.draw.forms import UNKNOWN, ago, identity, moment, number, ratio
from ottla.draw.markup import NOTHING, Markup, element, escaped, joined
from ottla.health.phrases import plural

__all__ = [
    "CSV_BYTES",
    "DETAIL",
    "DETAILS",
    "SHOWN_ROWS",
    "Field",
    "csv_text",
    "field",
    "fields",
    "listing",
    "permalink",
]

SHOWN_ROWS: Final = 200
SHORT: Final = 24
LONG: Final = 25
"""Tables with more rows have a scroll bar of their own."""
CSV_BYTES: Final = 120_000
"""The size of a table's CSV file, which is embedded as a data URL."""


class Detail(NamedTuple):
    """How many rows of a table are shown, and how much its CSV file holds; the same for tables of plots; and how many
    of the groups that can be searched are drawn."""

    rows: int
    csv_bytes: int
    twin_rows: int
    twin_csv_bytes: int
    drawn_groups: int


DETAILS: Final = (
    Detail(SHOWN_ROWS, CSV_BYTES, SHOWN_ROWS, 30_000, 20_000),
    Detail(SHOWN_ROWS, 60_000, 60, 8_000, 10_000),
    Detail(100, 15_000, 20, 0, 10_000),
    Detail(50, 0, 10, 0, 1_000),
)
"""From much to little: if a page gets too large, it is made again with less."""
DETAIL: Final = ContextVar("detail", default=DETAILS[0])
"""The detail of the page that is being made."""

Form = Callable[[Any], Markup]
Row = Mapping[str, Any]


def text(value: Any) -> Markup:
    return UNKNOWN if value is None or value == "" else escaped(str(value))


def words(value: Any) -> Markup:
    """A name with spaces instead of underscores."""
    return text(None if value is None else str(value).replace("_", " "))


def names(value: Any) -> Markup:
    return joined([identity(each) for each in value], ", ") if value else UNKNOWN


def plain(value: Any) -> Markup:
    """A number with all digits, for offsets, epochs and ports."""
    return text(value)


def seconds(value: float | None) -> Markup:
    return ago(None if value is None else 1000 * value)


def yes(value: Any) -> Markup:
    return UNKNOWN if value is None else escaped("yes" if value else "no")


FORMS: Final[dict[str, Form]] = {
    "text": text, "words": words, "id": identity, "ids": names, "plain": plain, "number": number, "ratio": ratio,
    "ms": ago, "s": seconds, "time": moment, "yes": yes,
}  # fmt: skip
_NUMERIC: Final = frozenset({"plain", "number", "ratio", "ms", "s"})


class Field(NamedTuple):
    name: str
    title: str
    form: str


def field(text: str) -> Field:
    """`name:form` or `name:form:title`; the default title is the name."""
    name, form, *title = text.split(":", 2)
    return Field(name, title[0] if title else name.replace("_", " "), form)


def fields(*texts: str) -> tuple[Field, ...]:
    return tuple(map(field, texts))


def permalink(name: str) -> Markup:
    """A link to a place on the page, shown beside its heading."""
    return element("a", "#", href=f"#{name}", class_="permalink", aria_label="Link to this place")


def listing(
    name: str, title: str, table: Mapping[str, Any], columns: Sequence[Field], nothing: str, *, is_twin: bool = False
) -> Markup:
    """A table of the facts. If not all rows are shown, it says so, with a link to a CSV file."""
    rows = table["rows"]
    if not rows:
        return element("p", nothing, class_="nothing", id=f"table-{name}")
    detail = DETAIL.get()
    shown = rows[: detail.twin_rows if is_twin else detail.rows]
    head = element("thead", element("tr", _heading(columns[0], ""), *(_heading(each) for each in columns[1:])))
    body = element("tbody", *(_row(row, columns) for row in shown))
    link = NOTHING if is_twin else permalink(f"table-{name}")
    caption = element("caption", title, " ", element("small", _counted(table, len(shown))), link)
    inner = element("table", caption, head, body, class_="cards")
    kind = "scroll long" if len(shown) > LONG else "scroll"
    region = element("div", inner, class_=kind, role="region", aria_label=f"Table: {title}", tabindex="0")
    return element(
        "div",
        region,
        _link(name, table, columns, detail.twin_csv_bytes if is_twin else detail.csv_bytes),
        class_="listing",
        id=f"table-{name}",
    )


def _counted(table: Mapping[str, Any], shown: int) -> str:
    if table["total"] <= shown:
        return f"{plural(shown, 'row')}, {table['order']}"
    return f"{shown:,} of {table['total']:,} rows, {table['order']}"


def _heading(column: Field, kind: str | None = None) -> Markup:
    """The first column is aligned left, even for numbers."""
    return element("th", column.title, scope="col", class_=_kind(column) if kind is None else None)


def _kind(column: Field, value: Any = None) -> str | None:
    """Numbers are aligned right; short words are not broken."""
    if column.form in _NUMERIC:
        return "num"
    return "short" if isinstance(value, str) and len(value) <= SHORT else None


def _row(row: Row, columns: Sequence[Field]) -> Markup:
    first, *others = columns
    kind = None if first.form in _NUMERIC else _kind(first, row.get(first.name))
    head = element("th", cell(row, first), scope="row", class_=kind)
    return element("tr", head, *(_cell(row, each) for each in others))


def _cell(row: Row, column: Field) -> Markup:
    kind = _kind(column, row.get(column.name))
    return element("td", cell(row, column), data_label=column.title, class_=kind)


def cell(row: Row, column: Field) -> Markup:
    return FORMS[column.form](row.get(column.name))


# --- files ------------------------------------------------------------------------------------------------------------


def _link(name: str, table: Mapping[str, Any], columns: Sequence[Field], bytes_max: int) -> Markup:
    address, count = _address(table["rows"], _csv_names(table["rows"], columns), bytes_max)
    total = table["total"]
    which = plural(count, "row") if count == total else f"the first {count:,} of {total:,} rows"
    link = element("a", f"CSV, {which}", href=address, download=f"{name}.csv", class_="csv")
    return element("p", link, class_="files") if count else NOTHING


def _csv_names(rows: Sequence[Row], columns: Sequence[Field]) -> list[str]:
    return list(dict.fromkeys([*(each.name for each in columns), *(rows[0] if rows else ())]))


def _address(rows: Sequence[Row], names: Sequence[str], bytes_max: int) -> tuple[str, int]:
    """A data URL with as many rows as fit, and their number."""
    count = len(rows)
    while True:
        address = "data:text/csv;charset=utf-8," + quote(csv_text(rows[:count], names), safe=" ,;:/'()*!~-_.{}[]\"|")
        if len(address) <= bytes_max or not count:
            return address, count
        count = min(count - 1, count * bytes_max // len(address))


def csv_text(rows: Iterable[Row], names: Sequence[str]) -> str:
    """Raw values, as in the JSON file. A cell that a spreadsheet would read as a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_raw(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _raw(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
