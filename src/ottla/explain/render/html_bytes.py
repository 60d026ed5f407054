"""The example in HTML: its bytes beside the tree of its fields, both labelled with the same paths.

A field is named by its path with indexes in `data-path`, here and in the tree; rows of the diagram and of the schema
carry the path without indexes in `data-field`. With these the script highlights what belongs together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain import hexview
from ottla.explain.page import DiagramRow, Example, MessagePage, Span

HALF_ROW_BYTES = 8
"""A row has two halves; on a narrow screen they stand below each other."""


@dataclass(slots=True)
class Node:
    """A field, an element or a whole block of the example, with the bytes of all that is in it."""

    path: str
    name: str
    start: int
    end: int
    type: str = ""
    value: str = ""
    hue: int | None = None
    is_mark: bool = False
    """Whether the bytes have no value of their own, such as a count of tagged fields."""
    children: list[Node] = field(default_factory=list)


def field_of(path: str) -> str:
    """A path without its indexes, as rows of the diagram have it."""
    pieces = path.split("[")
    return "".join([pieces[0], *(f"[]{piece.partition(']')[2]}" for piece in pieces[1:])])


def tree(page: MessagePage) -> list[Node]:
    """The example's blocks, each with its fields below."""
    types = {row_field(row): row.type for block in page.diagram for row in block.rows}
    roots: list[Node] = []
    nodes: dict[str, Node] = {}
    for group in hexview.groups(page.example):
        path = hexview.field_path(group.spans[0])
        node = _node(path, nodes, roots, group.start)
        node.hue, node.value = group.hue, _value(group)
        node.type = types.get(field_of(path)) or next((span.type for span in group.spans if span.is_value), "")
        node.is_mark = group.spans[0].role == "tags"
        _extend(path, nodes, group.end)
    titles = {block.rows[0].path.partition(".")[0]: block.title for block in reversed(page.diagram) if block.rows}
    for root in roots:
        root.name = titles.get(root.path, root.name)
    return roots


def row_field(row: DiagramRow) -> str:
    """The `data-field` of a row of the diagram. A tagged section has its struct's path and one word more."""
    return f"{row.path} tags" if row.is_tagged_section else row.path


def _value(group: hexview.Group) -> str:
    """The text after the name; for records that are opened below, only their size."""
    first = group.spans[0]
    if first.role == "length" and not any(span.is_value for span in group.spans) and first.value != "0":
        return f"{first.value} bytes"
    if first.role == "tags" and first.value == "0":
        return "none"
    return group.value


def _node(path: str, nodes: dict[str, Node], roots: list[Node], start: int) -> Node:
    """The node of a path; missing ancestors are created."""
    if path in nodes:
        return nodes[path]
    above, name = _split(path)
    node = nodes[path] = Node(path, name, start, start)
    siblings = _node(above, nodes, roots, start).children if above else roots
    siblings.append(node)
    return node


def _split(path: str) -> tuple[str, str]:
    """The parent of a node, and its name there: a field, an element such as [0], or a tagged section."""
    if path.endswith(" tags"):
        return path.removesuffix(" tags"), "tagged fields"
    if path.endswith("]"):
        at = path.rindex("[")
        return path[:at], path[at:]
    above, _, name = path.rpartition(".")
    return above, name


def _extend(path: str, nodes: Mapping[str, Node], end: int) -> None:
    while path:
        nodes[path].end = end
        path = _split(path)[0]


# --- as HTML ----------------------------------------------------------------------------------------------------------


def tree_list(nodes: Sequence[Node], *, is_top: bool = True) -> Markup:
    items = [_tree_item(node, is_top=is_top) for node in nodes]
    return element("ul", *items, class_="tree" if is_top else None)


def _tree_item(node: Node, *, is_top: bool) -> Markup:
    below = tree_list(node.children, is_top=False) if node.children else NOTHING
    return element("li", _tree_row(node, is_top=is_top), below)


def _tree_row(node: Node, *, is_top: bool) -> Markup:
    classes = ["node", f"h{node.hue}" if node.hue is not None else "", "dim" if node.is_mark else ""]
    value_class = "v text" if node.value.startswith('"') else "v"
    size = node.end - node.start
    return element(
        "div",
        element("span", class_="swatch") if node.hue is not None else NOTHING,
        element("span", node.name, class_="n whole" if is_top else "n"),
        joined([" ", element("span", node.value, class_=value_class)]) if node.value else NOTHING,
        joined([" ", element("span", node.type, class_="t")]) if node.type and not node.is_mark else NOTHING,
        joined([" ", element("span", f"{size} {'byte' if size == 1 else 'bytes'}", class_="t")]) if is_top else NOTHING,
        class_=" ".join(filter(None, classes)),
        data_path=node.path,
        data_at=f"{node.start}-{node.end}",
    )


def hex_rows(example: Example) -> Markup:
    """The bytes in rows of sixteen, made of two halves with an offset each."""
    halves = list(_halves(example))
    rows = [element("div", *halves[at : at + 2], class_="row") for at in range(0, len(halves), 2)]
    return element("div", *rows, class_="hex")


def _halves(example: Example) -> Iterator[Markup]:
    data = example.data
    spans = iter(example.spans)
    span = next(spans)
    for start in range(0, len(data), HALF_ROW_BYTES):
        end = min(start + HALF_ROW_BYTES, len(data))
        at = start
        pieces = []
        while at < end:
            while span.end <= at:
                span = next(spans)
            stop = min(span.end, end)
            pieces.append(_piece(span, at, data[at:stop]))
            at = stop
        offset = element("span", f"{start:04x}", class_="at")
        yield element("span", offset, " ", joined(pieces, " "), class_="half")


def _piece(span: Span, at: int, data: bytes) -> Markup:
    """The bytes of a span in one half of a row. Only the first part of a span has its value."""
    note = None
    if at == span.start:
        size = span.end - span.start
        note = f"{span.label}, {span.type}: {span.value}" if span.value else f"{span.label}, {span.type}"
        note = f"{note} ({size} {'byte' if size == 1 else 'bytes'} at 0x{span.start:04x})"
    return element(
        "span",
        data.hex(" "),
        class_=f"b h{span.hue}{'' if span.is_value else ' dim'}",
        data_path=hexview.field_path(span),
        data_note=note,
    )
