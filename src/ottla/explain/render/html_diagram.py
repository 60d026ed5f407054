"""The wire diagram in HTML: fields as boxes in the order of their bytes, structs as boxes around their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ottla.draw.markup import NOTHING, Markup, element
from ottla.explain.page import Block, DiagramRow
from ottla.explain.render.html_bytes import row_field

Anchor = Callable[[DiagramRow], str | None]
"""The link target of a field's name."""


@dataclass(slots=True)
class _Cell:
    row: DiagramRow
    inner: list[_Cell] = field(default_factory=list)


def block(found: Block, title: Markup, anchor: Anchor) -> Markup:
    """A titled part of the diagram."""
    flexible = element("span", "flexible", class_="badge") if found.flexible else NOTHING
    head = element("h3", title, " ", flexible)
    return element("div", head, _cells(_nested(found.rows), anchor), class_=f"block {found.kind}")


def _nested(rows: Sequence[DiagramRow]) -> list[_Cell]:
    """The flat rows as a tree: a row one deeper belongs to the row before it."""
    tops: list[_Cell] = []
    open_lists = [tops]
    for row in rows:
        cell = _Cell(row)
        del open_lists[row.depth + 1 :]
        open_lists[row.depth].append(cell)
        open_lists.append(cell.inner)
    return tops


def _cells(cells: Sequence[_Cell], anchor: Anchor) -> Markup:
    return element("ol", *(_item(cell, anchor) for cell in cells), class_="cells")


def _item(cell: _Cell, anchor: Anchor) -> Markup:
    row = cell.row
    target = anchor(row)
    name = element("a", row.name, class_="n", href=target) if target else element("span", row.name, class_="n")
    head = element(
        "div",
        name,
        *_facts(row),
        class_=f"cell-head type-{type_family(row.type)}",
        data_field=row_field(row),
    )
    inner = _cells(cell.inner, anchor) if cell.inner else NOTHING
    return element("li", head, inner, class_=_classes(cell))


def _facts(row: DiagramRow) -> list[Markup]:
    """Type, size and marks. The spaces are for readers without styles."""
    facts = [Markup(" "), element("span", row.type, class_="t"), Markup(" "), element("span", row.size, class_="s")]
    for mark in row.marks:
        facts += [Markup(" "), element("span", mark, class_=f"mark-{mark.partition(' ')[0]}")]
    return facts


def _classes(cell: _Cell) -> str:
    row = cell.row
    classes = ["cell"]
    if cell.inner:
        classes.append("nest")
        if "[]" in row.type:
            classes.append("many")
    if row.is_tagged_section:
        classes.append("tags")
    if not row.size.isdigit():
        classes.append("varies")
    return " ".join(classes)


def type_family(kind: str) -> str:
    """The colour class of a type: number, text, bytes or a container."""
    name = kind.removeprefix("compact ")
    if name.startswith("[]") or name[:1].isupper():
        return "many"
    if name in ("string", "bytes", "records", "uuid"):
        return "text" if name == "string" else "bytes"
    return "number"
