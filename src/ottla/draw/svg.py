"""A drawing as SVG: a self-contained file, light or dark according to the reader's system, or a part of a web page.

A part of a page has no style of its own: the page has `page_style` once, and decides on light or dark.

Texts have the width that the layout gave them in any font, so they never overlap. Every box and line has a title, which
browsers show as a tooltip and screen readers read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.draw.flat import Point
from ottla.draw.graph import EdgeKind, NodeKind
from ottla.draw.layout import Box, Drawing, Frame, Line
from ottla.draw.markup import Markup
from ottla.draw.palette import BACK, FRAME, MUTED, NODES, PAGE, TEXT, WIRE
from ottla.draw.text import cells, printable

CELL_WIDTH: Final = 8
ROW_HEIGHT: Final = 17
MARGIN: Final = 16
FONT_SIZE: Final = 12
LETTER_WIDTH: Final = 7.2
KIND_SIZE: Final = 9
KIND_LETTER_WIDTH: Final = 5.4
CORNER: Final = 5
FONTS: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
CLASSES: Final = {kind: kind.name.lower() for kind in NodeKind}
ROUNDING: Final = {
    NodeKind.STORE: 12,
    NodeKind.SOURCE: 3,
    NodeKind.PROCESSOR: 3,
    NodeKind.SINK: 3,
    NodeKind.SUBTOPOLOGY: 8,
}
BAR_WIDTH: Final = 13
BAR_GAP: Final = 5
LETTER_HEIGHT: Final = 11


class Segment(NamedTuple):
    """A piece of the bar along the left side of a subtopology, such as the tasks of one member."""

    size: int
    """In proportion to the other pieces."""
    letter: str
    tone: str
    """The class of the page that sets its colour, as `--h`."""
    title: str


class View(NamedTuple):
    """How a drawing is shown on a page."""

    zoom: float | None = 1.0
    """None makes it fit into its place."""
    links: Mapping[str, str] = MappingProxyType({})
    """Addresses behind titles of clusters and behind nodes, by their ids."""
    bars: Mapping[str, Sequence[Segment]] = MappingProxyType({})
    """Bars of clusters and nodes, by their ids."""


PLAIN: Final = View()


def svg_text(drawing: Drawing, title: str) -> str:
    """A whole file."""
    width, height = _size(drawing)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {_extent(drawing)} role="img" aria-labelledby="title desc">'
    page = f'<rect class="page" width="{width}" height="{height}"/>'
    head = [opening, *_about(drawing, title, ""), f"<style>{file_style()}</style>", _arrow(""), page]
    return "\n".join([*head, *_shapes(drawing, "", PLAIN)]) + "\n"


def svg_part(drawing: Drawing, title: str, name: str = "drawing", view: View = PLAIN) -> Markup:
    """A part of a web page that has `page_style`; its ids begin with `name`."""
    prefix = f"{name}-"
    fit = " fit" if view.zoom is None else ""
    role = "group" if view.links else "img"
    opening = (
        f'<svg class="drawing{fit}" {_extent(drawing, view.zoom or 1.0)} role="{role}" '
        f'aria-labelledby="{prefix}title {prefix}desc">'
    )
    head = [opening, *_about(drawing, title, prefix), _arrow(prefix)]
    # All names in it were escaped by `_text` and `_label`.
    return Markup("\n".join([*head, *_shapes(drawing, prefix, view)]))


def _size(drawing: Drawing) -> tuple[int, int]:
    return drawing.width * CELL_WIDTH + 2 * MARGIN, max(drawing.height, 1) * ROW_HEIGHT + 2 * MARGIN


def _extent(drawing: Drawing, zoom: float = 1.0) -> str:
    width, height = _size(drawing)
    return f'width="{width * zoom:.0f}" height="{height * zoom:.0f}" viewBox="0 0 {width} {height}"'


def _about(drawing: Drawing, title: str, prefix: str) -> list[str]:
    return [
        f'<title id="{prefix}title">{_text(title)}</title>',
        f'<desc id="{prefix}desc">{_text(_told(drawing))}</desc>',
    ]


def _arrow(prefix: str) -> str:
    return (
        f'<defs><marker id="{prefix}arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0.5L8,4L0,7.5z"/></marker></defs>'
    )


def _shapes(drawing: Drawing, prefix: str, view: View) -> list[str]:
    names = {box.node.id: box.node.name for box in drawing.boxes}
    return [
        f'<g transform="translate({MARGIN} {MARGIN})">',
        *map(_frame, drawing.frames),
        *(_line(line, names, f"{prefix}arrow") for line in _back_last(drawing.lines)),
        *(_bar(frame, view.bars.get(frame.cluster.id, ()), 12) for frame in drawing.frames),
        *(_title_of_frame(frame, view.links.get(frame.cluster.id)) for frame in drawing.frames),
        *(_box(box, view) for box in drawing.boxes),
        "</g>",
        "</svg>",
    ]


def _text(text: str) -> str:
    return escape(printable(text))


def _told(drawing: Drawing) -> str:
    """The drawing in one sentence, for screen readers."""
    kinds = [box.node.kind for box in drawing.boxes]
    counts = [f"{kinds.count(kind)} × {kind.value}" for kind in NodeKind if kind in kinds]
    back = sum(line.is_back for line in drawing.lines)
    frames = [f"{len(drawing.frames)} subtopologies"] if drawing.frames else []
    parts = [*frames, *counts, f"{len(drawing.lines)} connections"]
    return ", ".join(parts) + (f", {back} of them backwards" if back else "") + "."


# --- colours ----------------------------------------------------------------------------------------------------------


def file_style() -> str:
    light = ";".join(f"--{name}:{pair[0]}" for name, pair in _colours().items())
    dark = ";".join(f"--{name}:{pair[1]}" for name, pair in _colours().items())
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{_rules('')}"


def page_style() -> str:
    """The style sheet of web pages with drawings; `color-scheme` of the page decides on light or dark."""
    colours = ";".join(f"--{name}:light-dark({','.join(pair)})" for name, pair in _colours().items())
    return f"svg.drawing{{{colours}}}{_rules('svg.drawing ', _PAGE_RULES)}\n"


def _colours() -> dict[str, tuple[str, str]]:
    colours = {"page": PAGE, "text": TEXT, "muted": MUTED, "wire": WIRE, "back": BACK}
    colours |= {"frame": FRAME.fill, "frame-line": FRAME.line}
    for kind in NodeKind:
        colours |= {CLASSES[kind]: NODES[kind].fill, f"{CLASSES[kind]}-line": NODES[kind].line}
    return colours


_PAGE_RULES: Final = (
    (".segment rect", "fill:var(--h,var(--frame));stroke:var(--frame-line);stroke-width:.5"),
    (
        ".segment text",
        "font-size:10px;font-weight:700;paint-order:stroke;stroke:var(--page);stroke-width:3px",
    ),
    ("a", "cursor:pointer"),
    ("a .name,a .label", "fill:var(--link);text-decoration:underline"),
    ("a:focus-visible,.box:focus-visible", "outline:3px solid var(--focus);outline-offset:2px"),
)
"""Files have neither bars nor links."""


def _rules(scope: str, more: Sequence[tuple[str, str]] = ()) -> str:
    """The rules, for everything inside of the scope."""
    rules = [
        ("text", f"font:{FONT_SIZE}px {FONTS};fill:var(--text);white-space:pre"),
        (".kind,.name", f"font-size:{KIND_SIZE}px;fill:var(--muted)"),
        (".name", f"font-size:{FONT_SIZE}px"),
        (".page", "fill:var(--page)"),
        (".frame", "fill:var(--frame);stroke:var(--frame-line);stroke-width:1.5"),
        (".band", "fill:var(--frame)"),
        ("path.flow,path.uses", "fill:none;stroke:var(--wire);stroke-width:1.4"),
        ("path.uses", "stroke-dasharray:2 3"),
        ("path.back", "stroke:var(--back);stroke-dasharray:7 3"),
        ("marker path", "fill:context-stroke;stroke:none"),
        (".box rect,.box path", "stroke-width:1.4"),
        *map(_box_rule, NodeKind),
        *more,
    ]
    return "".join(f"{','.join(scope + each for each in names.split(','))}{{{body}}}" for names, body in rules)


def _box_rule(kind: NodeKind) -> tuple[str, str]:
    name = CLASSES[kind]
    dashes = ";stroke-dasharray:5 3" if kind is NodeKind.OPEN else ""
    return f".{name} rect,.{name} path", f"fill:var(--{name});stroke:var(--{name}-line){dashes}"


# --- shapes -----------------------------------------------------------------------------------------------------------


def _at(point: Point) -> Point:
    """The middle of a cell."""
    return point[0] * CELL_WIDTH + CELL_WIDTH // 2, point[1] * ROW_HEIGHT + ROW_HEIGHT // 2


def _outline(shape: Box | Frame) -> tuple[int, int, int, int]:
    """Left, top, width and height of its outline, which goes through the middle of its outer cells."""
    left, top = _at((shape.x, shape.y))
    return left, top, (shape.width - 1) * CELL_WIDTH, (shape.height - 1) * ROW_HEIGHT


def _frame(frame: Frame) -> str:
    left, top, width, height = _outline(frame)
    return f'<rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>'


def _title_of_frame(frame: Frame, link: str | None) -> str:
    left, top, _, _ = _outline(frame)
    title = printable(frame.cluster.title)
    width = cells(title) * LETTER_WIDTH
    band = f'<rect class="band" x="{left + 12}" y="{top - 8}" width="{width + 12:.1f}" height="16" rx="4"/>'
    shown = band + _label("name", left + 18 + width / 2, top + 4, title, LETTER_WIDTH)
    return shown if link is None else _linked(link, "fold", f"<title>fold {_text(title)}</title>{shown}")


def _linked(link: str, kind: str, inner: str) -> str:
    return f'<a class="{kind}" href="{escape(link)}" data-stay="">{inner}</a>'


def _bar(shape: Box | Frame, segments: Sequence[Segment], above: int) -> str:
    """A bar inside of the left border, divided in proportion; `above` is the room that it leaves there."""
    left, top, _, height = _outline(shape)
    y = float(top + above)
    unit = (height - above - BAR_GAP) / max(1, sum(each.size for each in segments))
    found = ""
    for each in segments:
        found += _segment(each, left + BAR_GAP, y, each.size * unit)
        y += each.size * unit
    return found


def _segment(each: Segment, x: int, y: float, height: float) -> str:
    rect = f'<rect x="{x}" y="{y:.1f}" width="{BAR_WIDTH}" height="{height:.1f}"/>'
    middle = f'x="{x + BAR_WIDTH / 2:g}" y="{y + height / 2 + 3:.1f}" text-anchor="middle"'
    letter = f"<text {middle}>{_text(each.letter)}</text>" if height >= LETTER_HEIGHT else ""
    return f'<g class="segment {each.tone}"><title>{_text(each.title)}</title>{rect}{letter}</g>'


def _label(kind: str, x: float, y: float, text: str, letter_width: float) -> str:
    length = cells(text) * letter_width
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="middle" textLength="{length:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


def _box(box: Box, view: View) -> str:
    left, top, width, height = _outline(box)
    segments = view.bars.get(box.node.id, ())
    # Texts are in the middle of what the bar leaves.
    middle = left + (width + (BAR_GAP + BAR_WIDTH if segments else 0)) / 2
    # The word of the kind is in the upper part of the box, the lines of the name are below it.
    first = top + height / 2 + (12 if len(box.lines) == 1 else 12 - (len(box.lines) - 1) * ROW_HEIGHT / 2)
    lines = "".join(
        _label("label", middle, first - 2 + number * ROW_HEIGHT, line, LETTER_WIDTH)
        for number, line in enumerate(box.lines)
    )
    word = _label("kind", middle, first - 14, box.node.kind.value, KIND_LETTER_WIDTH)
    title = _text(f"{box.node.kind.value} {box.node.name}")
    bar = _bar(box, segments, BAR_GAP)
    inner = f"<title>{title}</title>{_shape(box.node.kind, left, top, width, height)}{bar}{word}{lines}"
    kind = f"box {CLASSES[box.node.kind]}"
    link = view.links.get(box.node.id)
    return f'<g class="{kind}">{inner}</g>' if link is None else _linked(link, kind, inner)


def _shape(kind: NodeKind, left: int, top: int, width: int, height: int) -> str:
    if kind is NodeKind.STORE:
        return _drum(left, top, width, height)
    rounding = ROUNDING.get(kind, height // 2)
    return f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="{min(rounding, 15)}"/>'


def _drum(left: int, top: int, width: int, height: int) -> str:
    """A store is drawn as a cylinder, as in most drawings of databases."""
    right, bottom, half, bow = left + width, top + height, width / 2, 4
    return (
        f'<path d="M{left},{top + bow}A{half:g},{bow} 0 0 1 {right},{top + bow}V{bottom - bow}'
        f'A{half:g},{bow} 0 0 1 {left},{bottom - bow}z"/>'
    )


# --- lines ------------------------------------------------------------------------------------------------------------


def _back_last(lines: Sequence[Line]) -> Iterator[Line]:
    """Lines that go back are drawn last, above the others, because they are the surprising ones."""
    yield from (line for line in lines if not line.is_back)
    yield from (line for line in lines if line.is_back)


def _line(line: Line, names: Mapping[str, str], arrow_id: str) -> str:
    flows = line.edge.kind is EdgeKind.FLOW
    classes = line.edge.kind.value + (" back" if line.is_back else "")
    arrow = f' marker-end="url(#{arrow_id})"' if flows else ""
    sign = "→" if flows else "uses"
    title = _text(f"{names[line.edge.source]} {sign} {names[line.edge.target]}")
    points = [_at(point) for point in line.points]
    return f'<path class="{classes}" d="{_rounded(points)}"{arrow}><title>{title}</title></path>'


def _rounded(points: Sequence[Point]) -> str:
    found = "M{},{}".format(*points[0])
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(CORNER, _length(before, corner) // 2, _length(corner, after) // 2)
        start, end = _towards(corner, before, radius), _towards(corner, after, radius)
        found += "L{},{}Q{},{} {},{}".format(*start, *corner, *end)
    return found + "L{},{}".format(*points[-1])


def _length(one: Point, other: Point) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(corner: Point, other: Point, distance: int) -> Point:
    x, y = (other[0] > corner[0]) - (other[0] < corner[0]), (other[1] > corner[1]) - (other[1] < corner[1])
    return corner[0] + x * distance, corner[1] + y * distance
