"""A layered layout of boxes without clusters: layers, order, positions and lines, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.draw.layers import Item, Layered, Link, LinkPiece, layered
from ottla.draw.line_routes import Routed, route
from ottla.draw.vertex_order import order
from ottla.draw.vertex_positions import place

Point = tuple[int, int]


class Flat(NamedTuple):
    """Positions in cells, from the left and from the top."""

    lefts: list[int]
    tops: list[int]
    paths: list[list[Point]]
    """The path of each link, from the last row of its source to the first row of its target."""
    back: list[bool]
    width: int
    height: int


def flat_layout(items: Sequence[Item], links: Sequence[Link]) -> Flat:
    graph = layered(items, links)
    layers = order(items, graph)
    lefts = place(items, graph, layers)
    routed = route(items, graph, lefts)
    heights = [max((items[each].height for each in layer if each < len(items)), default=1) for layer in layers]
    gap_tops = _gap_tops(heights, routed.rows)
    tops = [gap_tops[layer] + routed.rows[layer] for layer in graph.layer_of[: len(items)]]
    drawn = _Paths(items, graph, tops, routed, gap_tops)
    paths = [drawn.path(chain) for chain in graph.chains]
    columns = [x + 1 for path in paths for x, _ in path]
    right = max([left + item.width for left, item in zip(lefts, items, strict=False)] + columns, default=0)
    return Flat(lefts[: len(items)], tops, paths, graph.back, right, gap_tops[-1] + routed.rows[-1])


def _gap_tops(heights: Sequence[int], rows: Sequence[int]) -> list[int]:
    tops = [0]
    for height, gap in zip(heights, rows, strict=False):
        tops.append(tops[-1] + gap + height)
    return tops


class _Paths:
    def __init__(
        self, items: Sequence[Item], graph: Layered, tops: Sequence[int], routed: Routed, gap_tops: Sequence[int]
    ) -> None:
        self._items, self._graph, self._tops, self._routed, self._gap_tops = items, graph, tops, routed, gap_tops

    def path(self, chain: Sequence[LinkPiece]) -> list[Point]:
        first, last = chain[0], chain[-1]
        points = [(self._routed.piece_ends[first][0], self._tops[first.source] + self._items[first.source].height - 1)]
        for piece in chain:
            track = self._routed.tracks[piece]
            if track is not None:
                row = self._gap_tops[piece.gap] + track
                points += [(x, row) for x in self._routed.piece_ends[piece]]
        points.append((self._routed.piece_ends[last][1], self._tops[last.target]))
        return _corners(points)


def _corners(points: Iterable[Point]) -> list[Point]:
    """The points at which the line changes its direction, and both ends."""
    found: list[Point] = []
    for point in points:
        if found and found[-1] == point:
            continue
        if len(found) > 1 and _in_line(found[-2], found[-1], point):
            found[-1] = point
        else:
            found.append(point)
    return found


def _in_line(one: Point, two: Point, three: Point) -> bool:
    return one[0] == two[0] == three[0] or one[1] == two[1] == three[1]
