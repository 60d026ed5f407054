"""The first steps of a layered layout: finds edges that go back, assigns boxes to layers, and adds points in between.

An edge that passes a layer gets a point there, so that every piece of it leads from one layer to the next. Edges that
leave a box together share these points as long as they go the same way. An edge that goes back leaves its box at the
bottom like all others, turns round, goes up through points beside the boxes and enters from above with its arrow down.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.draw.graph import Rank

POINT_WIDTH: Final = 1


class Item(NamedTuple):
    """A box to be placed; sizes in cells."""

    width: int
    height: int
    rank: Rank = Rank.ANY


class Link(NamedTuple):
    """An edge between two boxes, which are given by their numbers."""

    source: int
    target: int
    net: Hashable = None
    """Links of a box with the same net leave the box as one line that forks."""
    source_span: tuple[int, int] | None = None
    """The part of the box where the link may begin, in cells from its left side; None for the whole box."""
    target_span: tuple[int, int] | None = None
    weight: float = 1.0
    """How strongly the layout tries to draw it straight."""


class LinkPiece(NamedTuple):
    """The part of links between two layers. If both ends are on the same side, the link turns round here."""

    gap: int
    """The gap between the layers gap - 1 and gap."""
    source: int
    target: int
    source_below: bool
    """Whether the source is above the gap, so that the piece leaves it at the bottom."""
    target_above: bool
    net: Hashable
    source_span: tuple[int, int] | None
    target_span: tuple[int, int] | None
    weight: float


class Layered(NamedTuple):
    """The vertices are the boxes, by their numbers, and then the points."""

    layers: list[list[int]]
    layer_of: list[int]
    pieces: list[LinkPiece]
    chains: list[list[LinkPiece]]
    """The pieces of every link, from its source to its target."""
    back: list[bool]


def layered(items: Sequence[Item], links: Sequence[Link]) -> Layered:
    back = back_links(items, links)
    ranks = _ranks(items, links, back)
    return _Points(ranks).joined(links, back)


def back_links(items: Sequence[Item], links: Sequence[Link]) -> list[bool]:
    """Links that lead to the first layer or away from the last, and those that close a cycle.

    Cycles are found by a depth-first search from the boxes without incoming links.
    """
    count = len(items)
    back = [items[each.source].rank is Rank.LAST or items[each.target].rank is Rank.FIRST for each in links]
    leaving: list[list[int]] = [[] for _ in items]
    for number, link in enumerate(links):
        if not back[number]:
            leaving[link.source].append(number)
    led_to = {links[number].target for numbers in leaving for number in numbers}
    starts = [each for each in range(count) if each not in led_to] + [each for each in range(count) if each in led_to]
    state = [0] * count  # 0 not seen, 1 on the way down, 2 done
    for start in starts:
        if not state[start]:
            _go_down(start, links, leaving, state, back)
    return back


def _go_down(start: int, links: Sequence[Link], leaving: list[list[int]], state: list[int], back: list[bool]) -> None:
    state[start] = 1
    way = [(start, iter(leaving[start]))]
    while way:
        vertex, rest = way[-1]
        number = next(rest, None)
        if number is None:
            state[vertex] = 2
            way.pop()
            continue
        target = links[number].target
        if state[target] == 1:
            back[number] = True
        elif state[target] == 0:
            state[target] = 1
            way.append((target, iter(leaving[target])))


def _ranks(items: Sequence[Item], links: Sequence[Link], back: Sequence[bool]) -> list[int]:
    """Each box is below all its predecessors; one without predecessors is just above its first successor."""
    after: list[list[int]] = [[] for _ in items]
    waiting = [0] * len(items)
    for link, is_back in zip(links, back, strict=True):
        if not is_back:
            after[link.source].append(link.target)
            waiting[link.target] += 1
    is_free = [not each for each in waiting]
    ranks = [0] * len(items)
    ready = [each for each in range(len(items)) if is_free[each]]
    for each in ready:
        for target in after[each]:
            ranks[target] = max(ranks[target], ranks[each] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for each, item in enumerate(items):
        if is_free[each] and after[each] and item.rank is not Rank.FIRST:
            ranks[each] = min(ranks[target] for target in after[each]) - 1
    last = max(ranks, default=0)
    return [last if item.rank is Rank.LAST else rank for item, rank in zip(items, ranks, strict=True)]


class _Points:
    """Adds the points of links that pass layers."""

    def __init__(self, ranks: list[int]) -> None:
        self.layer_of = ranks[:]
        self.pieces: dict[LinkPiece, None] = {}
        self._points: dict[Hashable, int] = {}

    def joined(self, links: Sequence[Link], back: Sequence[bool]) -> Layered:
        chains = [
            self._back(number, link) if is_back else self._forward(link)
            for number, (link, is_back) in enumerate(zip(links, back, strict=True))
        ]
        layers: list[list[int]] = [[] for _ in range(max(self.layer_of, default=-1) + 1)]
        for vertex, layer in enumerate(self.layer_of):
            layers[layer].append(vertex)
        return Layered(layers, self.layer_of, list(self.pieces), chains, list(back))

    def _point(self, layer: int, key: Hashable) -> int:
        if (layer, key) not in self._points:
            self._points[layer, key] = len(self.layer_of)
            self.layer_of.append(layer)
        return self._points[layer, key]

    def _piece(self, *parts: object) -> LinkPiece:
        piece = LinkPiece(*parts)  # type: ignore[arg-type]
        self.pieces[piece] = None
        return piece

    def _forward(self, link: Link) -> list[LinkPiece]:
        net = (link.source, link.net, link.source_span)
        first, last = self.layer_of[link.source], self.layer_of[link.target]
        stops = [link.source, *(self._point(layer, net) for layer in range(first + 1, last)), link.target]
        return [
            self._piece(
                first + at + 1,
                source,
                target,
                True,
                True,
                net,
                link.source_span if at == 0 else None,
                link.target_span if at == len(stops) - 2 else None,
                link.weight,
            )
            for at, (source, target) in enumerate(pairwise(stops))
        ]

    def _back(self, number: int, link: Link) -> list[LinkPiece]:
        net = ("back", number)
        low, high = self.layer_of[link.source], self.layer_of[link.target]
        points = [self._point(layer, net) for layer in range(low, high - 1, -1)]
        # It does not share a line with links that go down from the same box: it would seem to lead there.
        down = self._piece(low + 1, link.source, points[0], True, False, net, link.source_span, None, link.weight)
        up = [
            self._piece(low - at, source, target, False, False, net, None, None, link.weight)
            for at, (source, target) in enumerate(pairwise(points))
        ]
        over = self._piece(high, points[-1], link.target, False, True, net, None, link.target_span, link.weight)
        return [down, *up, over]
