"""The order of the vertices in each layer, with few crossings.

A sweep sorts each layer by the mean position of each vertex's neighbours in the layer before, and may then try to swap
adjacent vertices. The best order seen is kept. Nothing is random: equal input gives an equal order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.draw.layers import Item, Layered

SWEEPS: Final = 12
PATIENCE: Final = 3
"""After so many sweeps without an improvement the search stops."""


class _Join(NamedTuple):
    """A piece between two layers: its vertices, and where on them it ends, from 0 to below 1."""

    upper: int
    lower: int
    upper_part: float
    lower_part: float


def order(items: Sequence[Item], graph: Layered) -> list[list[int]]:
    """The layers, each ordered from the left."""
    joins = _joins(items, graph)
    layers = _first_order(graph, joins)
    best, fewest = [layer[:] for layer in layers], _crossings(layers, joins)
    idle = 0
    for sweep in range(SWEEPS):
        if not fewest or idle >= PATIENCE:
            break
        _sweep(layers, joins, down=sweep % 2 == 0)
        found = _crossings(layers, joins)
        idle = 0 if found < fewest else idle + 1
        if found < fewest:
            best, fewest = [layer[:] for layer in layers], found
    return best


def _joins(items: Sequence[Item], graph: Layered) -> list[list[_Join]]:
    """For each layer, the pieces that lead to it from the layer above."""
    joins: list[list[_Join]] = [[] for _ in graph.layers]

    def part(vertex: int, span: tuple[int, int] | None) -> float:
        return 0.5 if span is None or vertex >= len(items) else sum(span) / 2 / (items[vertex].width + 1)

    for piece in graph.pieces:
        if piece.source_below and piece.target_above:
            ends = (piece.source, piece.target), (piece.source_span, piece.target_span)
        elif not piece.source_below and not piece.target_above:
            ends = (piece.target, piece.source), (None, None)
        else:
            continue
        (upper, lower), (upper_span, lower_span) = ends
        joins[graph.layer_of[lower]].append(_Join(upper, lower, part(upper, upper_span), part(lower, lower_span)))
    return joins


def _first_order(graph: Layered, joins: list[list[_Join]]) -> list[list[int]]:
    """The order of a search from the top, which puts connected vertices near each other."""
    below: list[list[int]] = [[] for _ in graph.layer_of]
    for layer in joins:
        for join in layer:
            below[join.upper].append(join.lower)
    layers: list[list[int]] = [[] for _ in graph.layers]
    seen: set[int] = set()
    for start in (vertex for layer in graph.layers for vertex in layer):
        waiting = [start]
        while waiting:
            vertex = waiting.pop()
            if vertex not in seen:
                seen.add(vertex)
                layers[graph.layer_of[vertex]].append(vertex)
                waiting += reversed(below[vertex])
    return layers


def _sweep(layers: list[list[int]], joins: list[list[_Join]], *, down: bool) -> None:
    numbers = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
    for number in numbers:
        fixed = layers[number - 1 if down else number + 1]
        place = {vertex: at for at, vertex in enumerate(fixed)}
        near: dict[int, list[float]] = {}
        for join in joins[number if down else number + 1]:
            if down:
                near.setdefault(join.lower, []).append(place[join.upper] + join.upper_part)
            else:
                near.setdefault(join.upper, []).append(place[join.lower] + join.lower_part)
        layers[number] = _sorted(layers[number], near)


def _sorted(layer: list[int], near: dict[int, list[float]]) -> list[int]:
    """Vertices without neighbours stay where they are; the others are sorted."""
    middle = {vertex: sum(near[vertex]) / len(near[vertex]) for vertex in layer if vertex in near}
    moving = iter(sorted(middle, key=middle.__getitem__))
    return [next(moving) if vertex in middle else vertex for vertex in layer]


def _crossings(layers: list[list[int]], joins: list[list[_Join]]) -> int:
    return sum(_crossings_above(layers[at - 1], layers[at], joins[at]) for at in range(1, len(layers)))


def _crossings_above(upper: list[int], lower: list[int], joins: list[_Join]) -> int:
    """The number of pairs of joins that cross, counted with a Fenwick tree."""
    above = {vertex: at for at, vertex in enumerate(upper)}
    below = {vertex: at for at, vertex in enumerate(lower)}
    ends = sorted((above[each.upper] + each.upper_part, below[each.lower] + each.lower_part) for each in joins)
    ranks = {value: at + 1 for at, value in enumerate(sorted({end for _, end in ends}))}
    tree = [0] * (len(ranks) + 1)
    found = 0
    for seen, (_, end) in enumerate(ends):
        at, not_after = ranks[end], 0
        while at:
            not_after += tree[at]
            at &= at - 1
        found += seen - not_after
        at = ranks[end]
        while at < len(tree):
            tree[at] += 1
            at += at & -at
    return found
