"""The layout of a graph on a grid of cells, which fits a terminal and is scaled for SVG.

A cluster is laid out on its own and then is one large box in the layout around it. A line from outside may enter it
where nothing is above the box to which the line leads, and leave it where nothing is below. Parts of the graph that are
not connected are laid out separately and placed side by side, in rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.draw.flat import Flat, Point, flat_layout
from ottla.draw.graph import Cluster, Edge, EdgeKind, Graph, Node, Rank
from ottla.draw.layers import Item, Link
from ottla.draw.text import broken, cells, printable

PAD_X: Final = 3
"""Columns between the frame of a cluster and its content, including the frame."""
PAD_Y: Final = 2
PART_GAP_X: Final = 4
PART_GAP_Y: Final = 2
BORDER: Final = 2
WEIGHTS: Final = {EdgeKind.FLOW: 1.0, EdgeKind.USES: 0.05}
"""Nodes that records flow through stay in line; a store goes where there is room."""
TITLE_PAD: Final = 5
"""Columns beside the text of a title: a corner, a piece of the frame and a space before it, two columns after it."""
NAME_PAD: Final = 2
NAME_WIDTH: Final = 34
WIDTH: Final = 200


class Box(NamedTuple):
    node: Node
    lines: tuple[str, ...]
    x: int
    y: int
    width: int
    height: int


class Frame(NamedTuple):
    """The rectangle around a cluster; its title begins in the third column of the first row."""

    cluster: Cluster
    x: int
    y: int
    width: int
    height: int


class Line(NamedTuple):
    edge: Edge
    points: tuple[Point, ...]
    """From the last row of the source to the first row of the target."""
    is_back: bool


class Drawing(NamedTuple):
    graph: Graph
    boxes: tuple[Box, ...]
    frames: tuple[Frame, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def layout(graph: Graph, *, name_width: int = NAME_WIDTH, width: int = WIDTH) -> Drawing:
    """Names are broken at `name_width`; parts go to the next row beyond `width`, though one part may be wider.

    Raises ValueError for an edge with an unknown end, or one that leads into or out of the middle of a cluster.
    """
    _check(graph)
    boxes = _all_sized(graph, name_width)
    insides = {each.id: _inside(each, graph, boxes) for each in graph.clusters}
    drawings = [_part(part, boxes, insides) for part in _parts(graph)]
    return _shelved(graph, drawings, width)


def layout_within(graph: Graph, *, name_width: int, width: int) -> Drawing | None:
    """The layout, or None if it is wider than `width`; it stops as soon as that is known."""
    _check(graph)
    boxes = _all_sized(graph, name_width)
    if max((box.width for box in boxes.values()), default=0) > width:
        return None
    insides: dict[str, _Inside] = {}
    for cluster in graph.clusters:
        insides[cluster.id] = _inside(cluster, graph, boxes)
        if insides[cluster.id].frame.width > width:
            return None
    drawings = []
    for part in _parts(graph):
        drawings.append(_part(part, boxes, insides))
        if drawings[-1].width > width:
            return None
    drawing = _shelved(graph, drawings, width)
    return drawing if drawing.width <= width else None


def _all_sized(graph: Graph, name_width: int) -> dict[str, Box]:
    entering = Counter(edge.target for edge in graph.edges)
    leaving = Counter(edge.source for edge in graph.edges)
    return {node.id: _sized(node, max(entering[node.id], leaving[node.id]), name_width) for node in graph.nodes}


def _check(graph: Graph) -> None:
    nodes = {node.id: node for node in graph.nodes}
    for edge in graph.edges:
        source, target = nodes.get(edge.source), nodes.get(edge.target)
        if source is None or target is None:
            raise ValueError(f"there is no node at one end of {edge}")
        enters = target.cluster is None or target.rank is Rank.FIRST
        leaves = source.cluster is None or source.rank is Rank.LAST
        if source.cluster != target.cluster and not (enters and leaves):
            raise ValueError(f"in the middle of a cluster: {edge}")


def _sized(node: Node, pins: int, name_width: int) -> Box:
    """A box wide enough for its name and for all lines that end on one side of it."""
    lines = broken(printable(node.words), name_width)
    text = max([cells(node.kind.value) + 2, *map(cells, lines)])
    width = max(text, 2 * pins - 1) + BORDER + NAME_PAD
    return Box(node, lines, 0, 0, width, len(lines) + BORDER)


# --- inside of a cluster ----------------------------------------------------------------------------------------------


class _Inside(NamedTuple):
    """The layout of a cluster, with its frame at 0, 0."""

    frame: Frame
    boxes: dict[str, Box]
    lines: tuple[Line, ...]
    entries: dict[str, tuple[int, int]]
    """Columns in which a line may come down to a box of the first layer."""
    exits: dict[str, tuple[int, int]]
    """Columns in which a line may go down from a box of the last layer."""


def _inside(cluster: Cluster, graph: Graph, sized: Mapping[str, Box]) -> _Inside:
    nodes = [node for node in graph.nodes if node.cluster == cluster.id]
    ids = {node.id: at for at, node in enumerate(nodes)}
    edges = [edge for edge in graph.edges if edge.source in ids and edge.target in ids]
    taken_above = Counter(edge.target for edge in edges)
    taken_below = Counter(edge.source for edge in edges)
    items = [Item(sized[node.id].width, sized[node.id].height, node.rank) for node in nodes]
    found = flat_layout(items, [_link_inside(edge, ids, items, taken_above, taken_below) for edge in edges])
    coming = Counter(edge.target for edge in graph.edges if edge.source not in ids and edge.target in ids)
    title_end = cells(cluster.title) + TITLE_PAD
    unmoved = _boxes(found, [sized[node.id] for node in nodes], PAD_X, PAD_Y)
    aside = _aside(title_end, [(unmoved[each], count) for each, count in coming.items()])
    boxes = {each: box._replace(x=box.x + aside) for each, box in unmoved.items()}
    width = max(found.width + aside + 2 * PAD_X, title_end + 2)
    frame = Frame(cluster, 0, 0, width, found.height + 2 * PAD_Y)
    entries = {
        each: (max(box.x + 1 + 2 * taken_above[each], title_end), box.x + box.width - 2) for each, box in boxes.items()
    }
    exits = {each: (box.x + 1 + 2 * taken_below[each], box.x + box.width - 2) for each, box in boxes.items()}
    return _Inside(frame, boxes, _lines(found, edges, PAD_X + aside, PAD_Y), entries, exits)


def _link_inside(
    edge: Edge,
    ids: Mapping[str, int],
    items: Sequence[Item],
    taken_above: Mapping[str, int],
    taken_below: Mapping[str, int],
) -> Link:
    """A link within a cluster. One that leads to the first layer, or away from the last, uses the left part of the box
    there: the rest is for lines from outside. No valid topology has such links, but brokers do not check that."""
    source, target = ids[edge.source], ids[edge.target]
    below = (1, 2 * taken_below[edge.source] - 1) if items[source].rank is Rank.LAST else None
    above = (1, 2 * taken_above[edge.target] - 1) if items[target].rank is Rank.FIRST else None
    return Link(source, target, edge.kind, below, above, WEIGHTS[edge.kind])


def _aside(title_end: int, openings: Sequence[tuple[Box, int]]) -> int:
    """How far boxes must move so that the title leaves room above each for incoming lines."""
    return max([0, *(title_end + 2 * count - 1 - (box.x + box.width - 2) for box, count in openings)])


def _boxes(found: Flat, sized: Sequence[Box], x: int, y: int) -> dict[str, Box]:
    positions = zip(sized, found.lefts, found.tops, strict=True)
    return {box.node.id: box._replace(x=left + x, y=top + y) for box, left, top in positions}


def _lines(found: Flat, edges: Sequence[Edge], x: int, y: int) -> tuple[Line, ...]:
    return tuple(
        Line(edge, tuple((left + x, top + y) for left, top in path), is_back)
        for edge, path, is_back in zip(edges, found.paths, found.back, strict=True)
    )


# --- around the clusters ----------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A connected part: clusters and nodes outside of clusters, by their ids, and the edges between them."""

    ids: list[str]
    edges: list[Edge]
    owner: dict[str, str]
    """Node -> the cluster that contains it."""


def _parts(graph: Graph) -> list[_Part]:
    owner = {node.id: node.cluster or node.id for node in graph.nodes}
    outer = [
        edge for edge in graph.edges if owner[edge.source] != owner[edge.target] or owner[edge.source] == edge.source
    ]
    near: dict[str, list[str]] = {each: [] for each in (*owner.values(), *(each.id for each in graph.clusters))}
    for edge in outer:
        near[owner[edge.source]].append(owner[edge.target])
        near[owner[edge.target]].append(owner[edge.source])
    part_of: dict[str, int] = {}
    for number, start in enumerate(near):
        waiting = [start]
        while waiting:
            if (each := waiting.pop()) not in part_of:
                part_of[each] = number
                waiting += near[each]
    parts = {number: _Part([], [], owner) for number in part_of.values()}
    for each in near:
        parts[part_of[each]].ids.append(each)
    for edge in outer:
        parts[part_of[owner[edge.source]]].edges.append(edge)
    return list(parts.values())


class _Drawn(NamedTuple):
    boxes: list[Box]
    frames: list[Frame]
    lines: list[Line]
    width: int
    height: int


def _part(part: _Part, boxes: Mapping[str, Box], insides: Mapping[str, _Inside]) -> _Drawn:
    numbers = {each: at for at, each in enumerate(part.ids)}
    shapes: list[Box | Frame] = [insides[each].frame if each in insides else boxes[each] for each in part.ids]
    items = [Item(each.width, each.height) for each in shapes]
    links = [_link(edge, part, numbers, insides) for edge in part.edges]
    found = flat_layout(items, links)
    drawn = _Drawn([], [], [], found.width, found.height)
    for each, left, top in zip(part.ids, found.lefts, found.tops, strict=True):
        if each in insides:
            _put(insides[each], left, top, drawn)
        else:
            drawn.boxes.append(boxes[each]._replace(x=left, y=top))
    placed = {box.node.id: box for box in drawn.boxes}
    drawn.lines.extend(_reaching(line, placed) for line in _lines(found, part.edges, 0, 0))
    return drawn


def _link(edge: Edge, part: _Part, numbers: Mapping[str, int], insides: Mapping[str, _Inside]) -> Link:
    source, target = part.owner[edge.source], part.owner[edge.target]
    source_span = insides[source].exits[edge.source] if source in insides else None
    target_span = insides[target].entries[edge.target] if target in insides else None
    return Link(numbers[source], numbers[target], edge.kind, source_span, target_span)


def _put(inside: _Inside, x: int, y: int, drawn: _Drawn) -> None:
    drawn.frames.append(inside.frame._replace(x=x, y=y))
    drawn.boxes.extend(box._replace(x=box.x + x, y=box.y + y) for box in inside.boxes.values())
    drawn.lines.extend(_moved(line, x, y) for line in inside.lines)


def _moved(line: Line, x: int, y: int) -> Line:
    return line._replace(points=tuple((left + x, top + y) for left, top in line.points))


def _reaching(line: Line, placed: Mapping[str, Box]) -> Line:
    """The line, extended from the frame of a cluster to the box inside."""
    source, target = placed[line.edge.source], placed[line.edge.target]
    (first_x, _), (last_x, _) = line.points[0], line.points[-1]
    points = [(first_x, source.y + source.height - 1), *line.points[1:-1], (last_x, target.y)]
    return line._replace(points=tuple(points))


# --- parts side by side -----------------------------------------------------------------------------------------------


def _shelved(graph: Graph, drawings: Sequence[_Drawn], width: int) -> Drawing:
    boxes: list[Box] = []
    frames: list[Frame] = []
    lines: list[Line] = []
    positions = list(_positions(drawings, width))
    for drawn, (x, y) in zip(drawings, positions, strict=True):
        boxes += [box._replace(x=box.x + x, y=box.y + y) for box in drawn.boxes]
        frames += [frame._replace(x=frame.x + x, y=frame.y + y) for frame in drawn.frames]
        lines += [_moved(line, x, y) for line in drawn.lines]
    right = max((x + drawn.width for drawn, (x, _) in zip(drawings, positions, strict=True)), default=0)
    bottom = max((y + drawn.height for drawn, (_, y) in zip(drawings, positions, strict=True)), default=0)
    return Drawing(graph, tuple(boxes), tuple(frames), tuple(lines), right, bottom)


def _positions(drawings: Sequence[_Drawn], width: int) -> Iterator[Point]:
    x = y = row_height = 0
    for drawn in drawings:
        if x and x + drawn.width > width:
            x, y, row_height = 0, y + row_height + PART_GAP_Y, 0
        yield x, y
        x += drawn.width + PART_GAP_X
        row_height = max(row_height, drawn.height)
