"""A tree in the terminal: offset, bytes, field, value; never wider than the terminal.

::

       4                           ResponseHeader
       4  00 00 00 07                CorrelationId: 7                                      int32
       8  00                       FetchResponse

Offsets in brackets count decompressed bytes. A narrow terminal shows no types, and a very narrow one no bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.explain.render.lines import Line, Styled
from ottla.explain.tree import NOTHING, Node
from ottla.explain.values_text import value_text

__all__ = ["tree_lines"]

INDENT = 2
HEX_FULL_WIDTH = 100
HEX_SHORT_WIDTH = 72
TYPE_WIDTH_MIN = 90
VALUE_WIDTH_MIN = 12
ELEMENTS_TEXT_MAX = 2000
"""How much of an array of numbers is formatted, before the line is cut to the width."""


class _Layout(NamedTuple):
    offset_width: int
    hex_bytes: int
    shows_type: bool
    width: int
    shows_marks: bool

    @property
    def hex_width(self) -> int:
        return 3 * self.hex_bytes + 1 if self.hex_bytes else 0


def tree_lines(
    nodes: Iterable[Node], data: bytes, width: int, *, shows_marks: bool = False, depth: int = 0
) -> Iterator[Line]:
    """One line per field; `data` is the input that the offsets count in."""
    hex_bytes = 8 if width >= HEX_FULL_WIDTH else 4 if width >= HEX_SHORT_WIDTH else 0
    layout = _Layout(len(str(len(data))) + 2, hex_bytes, width >= TYPE_WIDTH_MIN, width, shows_marks)
    for node in nodes:
        yield from _node_lines(node, data, layout, depth)


def _node_lines(node: Node, data: bytes, layout: _Layout, depth: int) -> Iterator[Line]:
    if node.kind == "derived" or (node.kind == "mark" and not layout.shows_marks):
        return
    flat = _flat_text(node)
    yield _line(node, flat, data, layout, depth)
    if flat is None:
        for child in node.children:
            yield from _node_lines(child, data, layout, depth + 1)


def _flat_text(node: Node) -> str | None:
    """An array of plain values in one line; None for a node with lines of its own."""
    if node.kind != "array" or not node.children:
        return None
    texts, length = [], 0
    for child in node.children:
        if child.kind != "value" or child.children or child.withheld:
            return None
        texts.append(value_text(child))
        length += len(texts[-1])
        if length > ELEMENTS_TEXT_MAX:
            texts.append("…")
            break
    return f"[{', '.join(texts)}]"


def _line(node: Node, flat: str | None, data: bytes, layout: _Layout, depth: int) -> Line:
    offset = f"({node.start})" if node.layer else f"{node.start} "
    line = [Styled(offset.rjust(layout.offset_width), "dim"), Styled(" ")]
    if layout.hex_bytes:
        style = "dim" if node.kind == "mark" else "code"
        line.append(Styled(_hex(node, data, layout, is_leaf=flat is not None or not node.children), style))
    room = layout.width - sum(len(piece.text) for piece in line)
    return [*line, *_fitted(_field(node, flat, depth, room), node, layout, room)]


def _field(node: Node, flat: str | None, depth: int, room: int) -> Line:
    # Deep nesting must not push fields out of the terminal.
    indent = " " * min(INDENT * depth, room // 3)
    value = flat if flat is not None else value_text(node)
    name = f"{node.type} {node.name}" if node.name.startswith("[") and node.kind == "struct" else node.name
    style = "heading" if node.kind == "struct" else "dim" if node.kind == "mark" else "name"
    pieces = [Styled(indent), Styled(name, style)]
    if value:
        pieces += [Styled(": ", "mark"), Styled(value, _value_style(node))]
    derived = ", ".join(f"{child.name} {value_text(child)}" for child in node.children if child.kind == "derived")
    for text in (derived, node.holds, node.note):
        if text:
            pieces.append(Styled(f"  {text}", "dim" if not node.note.startswith(("WRONG", "breaks")) else "warn"))
    return pieces


def _value_style(node: Node) -> str:
    if node.withheld:
        return "warn"
    if node.name.endswith("ErrorCode") and node.value not in (0, NOTHING):
        return "removed"
    return "string" if isinstance(node.value, str | bytes) else "number"


def _fitted(pieces: Line, node: Node, layout: _Layout, room: int) -> Line:
    """The pieces cut to the room, and the type at the right end if there is room left."""
    fitted: Line = []
    left = room
    for piece in pieces:
        if len(piece.text) > left:
            return [*fitted, Styled(piece.text[: left - 1] + "…", piece.style)] if left > 0 else fitted
        fitted.append(piece)
        left -= len(piece.text)
    if layout.shows_type and left > len(node.type) + 1 and node.kind != "struct":
        fitted += [Styled(" " * (left - len(node.type))), Styled(node.type, "type")]
    return fitted


def _hex(node: Node, data: bytes, layout: _Layout, *, is_leaf: bool) -> str:
    """The first bytes of a leaf. Secret bytes are never shown, and decompressed bytes are not available here."""
    size = node.end - node.start
    if not is_leaf or not size:
        return " " * layout.hex_width
    if node.withheld or node.layer:
        shown = "·· " * min(size, layout.hex_bytes) if node.withheld else ""
    else:
        shown = data[node.start : min(node.end, node.start + layout.hex_bytes)].hex(" ") + " "
    if size > layout.hex_bytes and shown:
        shown = shown[:-1] + "…"
    return shown.ljust(layout.hex_width)[: layout.hex_width]
