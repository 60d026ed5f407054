"""A drawing as text: boxes and lines of box-drawing characters, or of ASCII if the terminal has nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.draw.canvas import ASCII, ASCII_DOTTED, DOTTED, LIGHT, Canvas, Pen
from ottla.draw.graph import EdgeKind, Graph, NodeKind
from ottla.draw.layout import NAME_WIDTH, Box, Drawing, Frame, Line, layout, layout_within
from ottla.draw.outline import outline
from ottla.draw.palette import TERMINAL_COLOURS, TERMINAL_FRAME
from ottla.draw.text import cells

NAME_WIDTHS: Final = (NAME_WIDTH, 24, 14)
"""Tried one after the other until the drawing fits."""
EMPTY: Final = "(the topology is empty)\n"


class _Border(NamedTuple):
    """Corners clockwise from the upper left, then the sides, then the lower and the upper side where a line ends."""

    corners: str
    level: str
    upright: str
    leaving: str
    entering: str


class _Letters(NamedTuple):
    borders: Mapping[NodeKind, _Border]
    frame: _Border
    pens: Mapping[EdgeKind, Pen]
    down: str
    up: str


_PLAIN = _Border("┌┐┘└", "─", "│", "┬", "┴")
_DOUBLE = _Border("╔╗╝╚", "═", "║", "╤", "╧")
_ROUND = _Border("╭╮╯╰", "─", "│", "┬", "┴")
_BOXES = _Letters(
    {
        NodeKind.TOPIC: _DOUBLE,
        NodeKind.REPARTITION: _DOUBLE,
        NodeKind.OPEN: _DOUBLE,
        NodeKind.SOURCE: _PLAIN,
        NodeKind.PROCESSOR: _PLAIN,
        NodeKind.SINK: _PLAIN,
        NodeKind.STORE: _ROUND,
        NodeKind.SUBTOPOLOGY: _PLAIN,
    },
    _Border("┏┓┛┗", "━", "┃", "┿", "┿"),
    {EdgeKind.FLOW: LIGHT, EdgeKind.USES: DOTTED},
    "▼",
    "▲",
)
_ASCII_PLAIN = _Border("++++", "-", "|", "+", "+")
_ASCII_DOUBLE = _Border("++++", "=", "|", "+", "+")
_ASCII_ROUND = _Border("..''", "-", "|", "+", "+")
_ASCII = _Letters(
    {
        kind: _ASCII_DOUBLE if border is _DOUBLE else _ASCII_ROUND if border is _ROUND else _ASCII_PLAIN
        for kind, border in _BOXES.borders.items()
    },
    _Border("####", "#", "#", "|", "|"),
    {EdgeKind.FLOW: ASCII, EdgeKind.USES: ASCII_DOTTED},
    "v",
    "^",
)


def terminal_text(graph: Graph, *, width: int | None = None, ascii_only: bool = False, colour: bool = False) -> str:
    """The graph in at most `width` columns, or an outline if boxes do not fit. Without `width` there is no limit."""
    if not graph.nodes and not graph.clusters:
        return EMPTY
    drawing = layout(graph) if width is None else _narrowed(graph, width)
    if drawing is None:
        return _ascii(outline(graph, ascii_only=ascii_only, colour=colour), ascii_only)
    return _ascii(drawn_text(drawing, ascii_only=ascii_only, colour=colour), ascii_only)


def _narrowed(graph: Graph, width: int) -> Drawing | None:
    """The drawing with the widest names that fit."""
    found = (layout_within(graph, name_width=name_width, width=width) for name_width in NAME_WIDTHS)
    return next((drawing for drawing in found if drawing is not None), None)


def _ascii(text: str, ascii_only: bool) -> str:
    """Replaces characters that are not ASCII with question marks, one for each cell."""
    return "".join(each if each.isascii() else "?" * cells(each) for each in text) if ascii_only else text


def drawn_text(drawing: Drawing, *, ascii_only: bool = False, colour: bool = False) -> str:
    letters = _ASCII if ascii_only else _BOXES
    canvas = Canvas(drawing.width, drawing.height)
    for frame in drawing.frames:
        _frame(canvas, frame, letters.frame)
    for line in drawing.lines:
        canvas.line(line.points, _net(line), letters.pens[line.edge.kind])
    canvas.ink()
    for frame in drawing.frames:
        _crossings(canvas, frame, drawing.lines, letters.frame)
    for box in drawing.boxes:
        _box(canvas, box, letters.borders[box.node.kind])
    boxes = {box.node.id: box for box in drawing.boxes}
    for line in drawing.lines:
        _ends(canvas, line, boxes, letters)
    return "\n".join(canvas.rows(colour=colour)) + "\n"


def _net(line: Line) -> Hashable:
    return (line.edge, line.points[0]) if line.is_back else (line.edge.source, line.edge.kind, line.points[0])


def _rectangle(canvas: Canvas, shape: Box | Frame, border: _Border, style: str) -> None:
    upper_left, upper_right, lower_right, lower_left = tuple(border.corners)
    inner = border.level * (shape.width - 2)
    canvas.put(shape.x, shape.y, upper_left + inner + upper_right, style)
    canvas.put(shape.x, shape.y + shape.height - 1, lower_left + inner + lower_right, style)
    for y in range(shape.y + 1, shape.y + shape.height - 1):
        canvas.put(shape.x, y, border.upright, style)
        canvas.put(shape.x + shape.width - 1, y, border.upright, style)


def _frame(canvas: Canvas, frame: Frame, border: _Border) -> None:
    _rectangle(canvas, frame, border, TERMINAL_FRAME)
    canvas.put(frame.x + 2, frame.y, f" {frame.cluster.title} ", TERMINAL_FRAME)


def _crossings(canvas: Canvas, frame: Frame, lines: tuple[Line, ...], border: _Border) -> None:
    for line in lines:
        for (x, y), (other_x, other_y) in pairwise(line.points):
            for row in (frame.y, frame.y + frame.height - 1):
                if x == other_x and min(y, other_y) < row < max(y, other_y) and frame.x <= x < frame.x + frame.width:
                    canvas.put(x, row, border.leaving)


def _box(canvas: Canvas, box: Box, border: _Border) -> None:
    style = TERMINAL_COLOURS[box.node.kind]
    _rectangle(canvas, box, border, style)
    canvas.put(box.x + 1, box.y, f" {box.node.kind.value} ", style)
    for number, text in enumerate(box.lines):
        canvas.put(box.x + 1 + (box.width - 2 - cells(text)) // 2, box.y + 1 + number, text)


def _ends(canvas: Canvas, line: Line, boxes: Mapping[str, Box], letters: _Letters) -> None:
    (x, y), (end_x, end_y) = line.points[0], line.points[-1]
    source, target = boxes[line.edge.source], boxes[line.edge.target]
    canvas.put(x, y, letters.borders[source.node.kind].leaving, TERMINAL_COLOURS[source.node.kind])
    if line.edge.kind is EdgeKind.FLOW:
        canvas.put(end_x, end_y - 1, letters.down)
    elif not end_x <= target.x + 2 + cells(target.node.kind.value):
        canvas.put(end_x, end_y, letters.borders[target.node.kind].entering, TERMINAL_COLOURS[target.node.kind])
    if line.is_back:
        _climb(canvas, line, letters.up)


def _climb(canvas: Canvas, line: Line, letter: str) -> None:
    """Draw an arrow half-way along a line that goes up."""
    for (x, y), (_, end_y) in pairwise(line.points):
        if end_y < y:
            canvas.put(x, (y + end_y) // 2, letter)
