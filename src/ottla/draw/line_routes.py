"""Routes lines between two layers: straight down, or along a track of their own.

A line leaves its box at a pin, goes down to its track, along it, and down to the pin of the next box. Two lines never
overlap: tracks are assigned from the top so that lines do not meet in one column, and then so that they cross as little
as possible.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from ottla.draw.layers import Item, Layered, LinkPiece
from ottla.draw.vertex_positions import spread

PIN_DISTANCE: Final = 2
OUT_DISTANCE_MAX: Final = 6
ASIDE_MAX: Final = 4
ROWS_MIN: Final = 2
"""The rows of a gap with lines in it: one for the line, one for its arrow."""


class _Pin:
    """The point at which a line touches a vertex."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.x = (low + high) // 2


class Net:
    """The lines in one gap that belong together."""

    def __init__(self) -> None:
        self.tops: list[_Pin] = []
        self.bottoms: list[_Pin] = []
        self.track: int | None = None

    @property
    def low(self) -> int:
        return min(pin.x for pin in (*self.tops, *self.bottoms))

    @property
    def high(self) -> int:
        return max(pin.x for pin in (*self.tops, *self.bottoms))

    def touches(self, other: Net) -> bool:
        return self.low <= other.high + 1 and other.low <= self.high + 1


class Routed(NamedTuple):
    piece_ends: dict[LinkPiece, tuple[int, int]]
    """The columns of the two ends."""
    tracks: dict[LinkPiece, int | None]
    """Counted from the top of the gap; None for a straight line."""
    rows: list[int]
    """The height of each gap."""


def route(items: Sequence[Item], graph: Layered, lefts: Sequence[int]) -> Routed:
    """Gap 0 is above the first layer, and the last gap below the last layer."""
    pins = _pins(items, graph, lefts)
    gaps: list[dict[Hashable, Net]] = [{} for _ in range(len(graph.layers) + 1)]
    for piece in graph.pieces:
        net = gaps[piece.gap].setdefault(piece.net, Net())
        source, target = pins[piece]
        for pin, is_top in ((source, piece.source_below), (target, not piece.target_above)):
            ends = net.tops if is_top else net.bottoms
            if pin not in ends:
                ends.append(pin)
    rows = [_tracks(list(nets.values())) for nets in gaps]
    return Routed(
        {piece: (source.x, target.x) for piece, (source, target) in pins.items()},
        {piece: gaps[piece.gap][piece.net].track for piece in graph.pieces},
        rows,
    )


# --- pins -------------------------------------------------------------------------------------------------------------


def _pins(items: Sequence[Item], graph: Layered, lefts: Sequence[int]) -> dict[LinkPiece, tuple[_Pin, _Pin]]:
    sources = _source_pins(items, graph, lefts)
    pins: dict[LinkPiece, tuple[_Pin, _Pin]] = {}
    arriving: dict[tuple[int, tuple[int, int]], list[LinkPiece]] = {}
    for piece in graph.pieces:
        if piece.target < len(items):
            arriving.setdefault((piece.target, _span(items, piece.target, piece.target_span)), []).append(piece)
        else:
            pins[piece] = sources[piece], _Pin(lefts[piece.target], lefts[piece.target])
    for (vertex, (low, high)), pieces in arriving.items():
        pieces.sort(key=lambda piece: sources[piece].x)
        found = [_Pin(lefts[vertex] + low, lefts[vertex] + high) for _ in pieces]
        weights = [piece.weight for piece in pieces]
        _spread_pins(found, [sources[piece].x for piece in pieces], weights, PIN_DISTANCE)
        pins |= {piece: (sources[piece], pin) for piece, pin in zip(pieces, found, strict=True)}
    return {piece: pins[piece] for piece in graph.pieces}


def _source_pins(items: Sequence[Item], graph: Layered, lefts: Sequence[int]) -> dict[LinkPiece, _Pin]:
    """Lines that leave a box together share a pin; several pins are spread around the middle."""
    leaving: dict[tuple[int, tuple[int, int]], dict[Hashable, list[LinkPiece]]] = {}
    pins: dict[LinkPiece, _Pin] = {}
    for piece in graph.pieces:
        if piece.source < len(items):
            span = _span(items, piece.source, piece.source_span)
            leaving.setdefault((piece.source, span), {}).setdefault(piece.net, []).append(piece)
        else:
            pins[piece] = _Pin(lefts[piece.source], lefts[piece.source])
    for (vertex, (low, high)), nets in leaving.items():
        groups = sorted(nets.values(), key=lambda pieces: sum(lefts[each.target] for each in pieces) / len(pieces))
        found = [_Pin(lefts[vertex] + low, lefts[vertex] + high) for _ in groups]
        distance = max(PIN_DISTANCE, min(OUT_DISTANCE_MAX, (high - low) // len(groups)))
        wishes = [_straight(pin, pieces, lefts, len(items)) for pin, pieces in zip(found, groups, strict=True)]
        _spread_pins(found, wishes, [pieces[0].weight for pieces in groups], distance)
        pins |= {piece: pin for pieces, pin in zip(groups, found, strict=True) for piece in pieces}
    return pins


def _straight(pin: _Pin, pieces: Sequence[LinkPiece], lefts: Sequence[int], count: int) -> int:
    """The middle of the box, or a column near it in which a line to a point is straight."""
    points = [lefts[piece.target] for piece in pieces if piece.target >= count]
    near = [x for x in points if len(pieces) == 1 and abs(x - pin.x) <= ASIDE_MAX and pin.low <= x <= pin.high]
    return near[0] if near else pin.x


def _span(items: Sequence[Item], vertex: int, span: tuple[int, int] | None) -> tuple[int, int]:
    return span if span is not None else (1, items[vertex].width - 2)


def _spread_pins(pins: list[_Pin], wishes: Sequence[int], weights: Sequence[float], distance: int) -> None:
    low, high = pins[0].low, pins[0].high
    distance = min(distance, (high - low) // max(1, len(pins) - 1))
    total = distance * (len(pins) - 1)
    bounded = [min(max(wish, low + distance * at), high - total + distance * at) for at, wish in enumerate(wishes)]
    for pin, x in zip(pins, spread(bounded, weights, [distance] * (len(pins) - 1)), strict=True):
        pin.x = x


# --- tracks -----------------------------------------------------------------------------------------------------------


def _tracks(nets: list[Net]) -> int:
    """Assigns a track to each net that needs one; returns the height of the gap."""
    if not nets:
        return 0
    _move_apart(nets)
    bent = [net for net in nets if net.low != net.high]
    placed: list[Net] = []
    for net in _from_above(bent):
        above = [each.track for each in placed if each.track is not None and each.touches(net)]
        net.track = max(above, default=-1) + 1
        placed.append(net)
    tracks = max((net.track + 1 for net in placed if net.track is not None), default=0)
    return max(ROWS_MIN, tracks + 1)


def _must_be_above(nets: Sequence[Net]) -> dict[int, set[int]]:
    """For each net, the numbers of the nets whose tracks must be above: both go down in the same column."""
    coming = {pin.x: at for at, net in enumerate(nets) for pin in net.tops}
    return {at: {coming[pin.x] for pin in net.bottoms if coming.get(pin.x, at) != at} for at, net in enumerate(nets)}


def _stuck(above: dict[int, set[int]]) -> list[int]:
    """Nets that wait for each other in a cycle, or for such nets."""
    left = dict(above)
    while free := [at for at, others in left.items() if not others & left.keys()]:
        for at in free:
            del left[at]
    return sorted(left)


def _move_apart(nets: list[Net]) -> None:
    """Where nets wait for each other in a cycle, move a pin aside by a cell if its box has room."""
    for _ in range(len(nets)):
        above = _must_be_above(nets)
        stuck = _stuck(above)
        if not any(
            _moved_pin(nets, nets[at], {pin.x for each in above[at] for pin in nets[each].tops}) for at in stuck
        ):
            return


def _moved_pin(nets: Sequence[Net], net: Net, columns: set[int]) -> bool:
    taken = {pin.x for each in nets for pin in (*each.tops, *each.bottoms)}
    for pin in net.bottoms:
        if pin.x in columns:
            for x in (pin.x + 1, pin.x - 1):
                if pin.low <= x <= pin.high and x not in taken:
                    pin.x = x
                    return True
    return False


def _crossings_if_above(net: Net, other: Net) -> int:
    down_through_net = sum(net.low < pin.x < net.high for pin in other.tops)
    return down_through_net + sum(other.low < pin.x < other.high for pin in net.bottoms)


def _from_above(nets: list[Net]) -> list[Net]:
    above = _must_be_above(nets)
    gain = [[_crossings_if_above(net, other) - _crossings_if_above(other, net) for other in nets] for net in nets]
    left = list(range(len(nets)))
    found = []
    while left:
        waiting = set(left)
        free = [at for at in left if not above[at] & waiting] or left
        chosen = min(free, key=lambda at: (sum(gain[at][other] for other in left), nets[at].low, at))
        left.remove(chosen)
        found.append(nets[chosen])
    return found
