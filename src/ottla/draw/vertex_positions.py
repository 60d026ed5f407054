"""The horizontal positions of the vertices in ordered layers, and where links end on them.

Each layer in turn gets the positions nearest to those that its neighbours want, in its order and with space between.
That is an isotonic regression: where wishes collide, the vertices form a block at the mean of the wishes (pool adjacent
violators).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise, takewhile
from typing import Final

from ottla.draw.layers import POINT_WIDTH, Item, Layered, LinkPiece

BOX_GAP: Final = 3
POINT_GAP: Final = 1
ROUNDS: Final = 6
STRAIGHT_WEIGHT: Final = 8.0
"""How much more it matters that two points of a line are in one column than that two boxes are."""


def spread(wishes: Sequence[float], weights: Sequence[float], distances: Sequence[int]) -> list[int]:
    """Increasing integers as near to the wishes as possible, with `distances[i]` or more between i and i + 1."""
    if not distances:
        return [round(wish) for wish in wishes]
    offsets = [0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[list[float]] = []  # mean, weight, count
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        blocks.append([wish - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, total, count = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * total) / (last[1] + total)
            last[1] += total
            last[2] += count
    means = [mean for mean, _, count in blocks for _ in range(int(count))]
    # Rounding all in the same way keeps the order and the distances.
    return [round(mean) + offset for mean, offset in zip(means, offsets, strict=True)]


def place(items: Sequence[Item], graph: Layered, layers: Sequence[Sequence[int]]) -> list[int]:
    """The left side of every vertex; the leftmost is at 0."""
    return _Placing(items, graph, layers).placed()


class _Placing:
    def __init__(self, items: Sequence[Item], graph: Layered, layers: Sequence[Sequence[int]]) -> None:
        self._count = len(items)
        self._layers = layers
        self._widths = [item.width for item in items] + [POINT_WIDTH] * (len(graph.layer_of) - len(items))
        self._near: tuple[list[list[tuple[int, float, float]]], ...] = tuple(
            [[] for _ in graph.layer_of] for _ in (0, 1)
        )
        """For above and below: the neighbour, the distance of the left sides that makes the line straight, a weight."""
        self._climbing: dict[Hashable, list[int]] = {}
        """The points of each line that goes back."""
        for piece in graph.pieces:
            self._join(piece)
            if not piece.source_below:
                self._climbing.setdefault(piece.net, []).append(piece.source)
        self._left = [0] * len(graph.layer_of)

    def _middle(self, vertex: int, span: tuple[int, int] | None) -> float:
        return sum(span) / 2 if span is not None else (self._widths[vertex] - 1) / 2

    def _join(self, piece: LinkPiece) -> None:
        if piece.source_below != piece.target_above:
            return
        upper, lower = (piece.source, piece.target) if piece.source_below else (piece.target, piece.source)
        points = (upper >= self._count) + (lower >= self._count)
        weight = (1.0, 2.0, STRAIGHT_WEIGHT)[points] * piece.weight
        upper_span, lower_span = (piece.source_span, piece.target_span) if piece.source_below else (None, None)
        shift = self._middle(upper, upper_span) - self._middle(lower, lower_span)
        self._near[0][lower].append((upper, shift, weight))
        self._near[1][upper].append((lower, -shift, weight))

    def _gap(self, one: int, other: int) -> int:
        return (
            BOX_GAP
            if one < self._count and other < self._count
            else POINT_GAP + (one < self._count or other < self._count)
        )

    def _wish(self, vertex: int, sides: tuple[int, ...]) -> tuple[float, float]:
        pull = total = 0.0
        for side in sides:
            for other, shift, weight in self._near[side][vertex]:
                pull += (self._left[other] + shift) * weight
                total += weight
        return (pull / total, total) if total else (float(self._left[vertex]), 0.01)

    def _settle(self, layer: Sequence[int], sides: tuple[int, ...]) -> None:
        wishes = [self._wish(vertex, sides) for vertex in layer]
        distances = [self._widths[one] + self._gap(one, other) for one, other in pairwise(layer)]
        lefts = spread([wish for wish, _ in wishes], [weight for _, weight in wishes], distances)
        for vertex, left in zip(layer, lefts, strict=True):
            self._left[vertex] = left

    def _pull_in(self) -> None:
        """Move lines that go back on the far right as near as possible; nothing else pulls them there."""
        before = {other: one for layer in self._layers for one, other in pairwise(layer)}
        climbing = {point for points in self._climbing.values() for point in points}
        outside = {point for layer in self._layers for point in takewhile(climbing.__contains__, reversed(layer))}
        for points in sorted(self._climbing.values(), key=lambda points: self._left[points[0]]):
            if outside.issuperset(points):
                needed = [self._right(before[point], point) for point in points if point in before]
                for point in points if needed else ():
                    self._left[point] = min(self._left[point], max(needed))

    def _right(self, one: int, other: int) -> int:
        """The first column for `other` to the right of `one`."""
        return self._left[one] + self._widths[one] + self._gap(one, other)

    def placed(self) -> list[int]:
        for layer in self._layers:
            at = 0
            for vertex in layer:
                self._left[vertex] = at
                at += self._widths[vertex] + BOX_GAP
        for _ in range(ROUNDS):
            for layer in self._layers[1:]:
                self._settle(layer, (0,))
            for layer in reversed(self._layers[:-1]):
                self._settle(layer, (1,))
        for layer in self._layers:
            self._settle(layer, (0, 1))
        for layer in self._layers[1:]:
            self._settle(layer, (0,))
        self._pull_in()
        first = min(self._left, default=0)
        return [left - first for left in self._left]
