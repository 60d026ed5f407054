"""A run of quorum nodes as SVG: a lane for each node with its states over time, and where its log ended.

A lane's blocks are the node's states, with the epoch where there is room: leader, follower, asking for votes, or
without a leader; a gap is a node that is down. The line in a lane is the end of the log, so a fall is a cut; the dotted
line is the high watermark. The marks at the top are elections.
"""

from __future__ import annotations

from typing import Final

from ottla.draw.markup import Markup, element, joined
from ottla.draw.palette import MUTED, PAGE, TEXT, WIRE
from simulation.quorum.world import QuorumWorld, StateChange

__all__ = ["draw_quorum"]

_WIDTH: Final = 1_000
_LEFT: Final = 60
_LANE: Final = 84
_GAP: Final = 14
_TOP: Final = 46
_BAR: Final = 20
_CHARACTER: Final = 8
_FILLS: Final = {
    "LEADER": ("leads", "#bfe3cf"),
    "FOLLOWER": ("follows", "#d6e6f8"),
    "PROSPECTIVE": ("asks for pre-votes", "#fbe3b6"),
    "CANDIDATE": ("asks for votes", "#f5c06b"),
    "UNATTACHED": ("knows no leader", "#e7e9ec"),
    "RESIGNED": ("has resigned", "#f3c7c3"),
}


def draw_quorum(world: QuorumWorld) -> str:
    """The picture of a run that has ended."""
    end_ms = max(world.now_ms(), 1)
    ids = sorted(world.nodes)
    height = _TOP + len(ids) * (_LANE + _GAP) + 40
    highest = max((each.end_offset for each in world.history), default=1) or 1
    lanes = [
        _lane(node_id, [each for each in world.history if each.node_id == node_id], _Scale(end_ms, highest), row)
        for row, node_id in enumerate(ids)
    ]
    title = f"Seed {world.seed}: {world.counts['elections']} elections in {end_ms / 1000:.0f} s"
    svg = element(
        "svg",
        element("title", title),
        element("rect", width=_WIDTH, height=height, fill=PAGE[0]),
        element("text", title, x=_LEFT, y=20, fill=TEXT[0], font_size=15),
        *lanes,
        _elections(world, _Scale(end_ms, highest), height),
        _legend(height),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        font_family="sans-serif",
        role="img",
    )
    return str(svg)


class _Scale:
    def __init__(self, end_ms: int, highest: int) -> None:
        self.end_ms = end_ms
        self._highest = highest

    def x(self, at_ms: int) -> int:
        return _LEFT + at_ms * (_WIDTH - _LEFT - 10) // self.end_ms

    def y(self, offset: int, bottom: int) -> int:
        """Where an offset is in the part of a lane below its blocks."""
        return bottom - max(offset, 0) * (_LANE - _BAR - 4) // self._highest


def _lane(node_id: int, changes: list[StateChange], scale: _Scale, row: int) -> Markup:
    top = _TOP + row * (_LANE + _GAP)
    bottom = top + _LANE
    ends, commits = [], []
    for each, until_ms in _until(changes, scale.end_ms):
        left, right = scale.x(each.at_ms), scale.x(until_ms)
        ends += [(left, scale.y(each.end_offset, bottom)), (right, scale.y(each.end_offset, bottom))]
        commits += [(left, scale.y(each.high_watermark, bottom)), (right, scale.y(each.high_watermark, bottom))]
    return element(
        "g",
        element("text", f"n{node_id}", x=10, y=top + 15, fill=TEXT[0], font_size=15),
        element("rect", x=_LEFT, y=top, width=_WIDTH - _LEFT - 10, height=_LANE, fill="none", stroke="#d0d7de"),
        *_blocks(changes, scale, top),
        _line(ends, "#0b5cad", None),
        _line(commits, "#11693f", "2 3"),
    )


def _until(changes: list[StateChange], end_ms: int) -> list[tuple[StateChange, int]]:
    """Each change, and when the next one comes."""
    return list(zip(changes, [*(each.at_ms for each in changes[1:]), end_ms], strict=True))


def _blocks(changes: list[StateChange], scale: _Scale, top: int) -> list[Markup]:
    """The states; what stays the same is one block."""
    first = [
        each
        for before, each in zip([None, *changes], changes, strict=False)
        if before is None or (before.state, before.epoch) != (each.state, each.epoch)
    ]
    spans = [(each, scale.x(each.at_ms), scale.x(until_ms)) for each, until_ms in _until(first, scale.end_ms)]
    return [_block(each, left, right, top) for each, left, right in spans if each.state in _FILLS and right > left]


def _block(change: StateChange, left: int, right: int, top: int) -> Markup:
    word, fill = _FILLS[change.state]
    label = str(change.epoch)
    has_room = right - left > _CHARACTER * (len(label) + 1)
    return element(
        "g",
        element("title", f"n{change.node_id} {word} in epoch {change.epoch} from {change.at_ms} ms on"),
        element("rect", x=left, y=top, width=right - left, height=_BAR, fill=fill),
        element("text", label, x=left + 3, y=top + 15, font_size=12, fill=TEXT[0]) if has_room else None,
    )


def _line(points: list[tuple[int, int]], stroke: str, dashes: str | None) -> Markup:
    shown = " ".join(f"{x},{y}" for x, y in points)
    return element("polyline", points=shown, fill="none", stroke=stroke, stroke_width=2, stroke_dasharray=dashes)


def _elections(world: QuorumWorld, scale: _Scale, height: int) -> Markup:
    led: set[int] = set()
    marks = []
    for each in world.history:
        if each.state == "LEADER" and each.epoch not in led:
            led.add(each.epoch)
            x = scale.x(each.at_ms)
            marks.append(
                element("line", x1=x, x2=x, y1=_TOP - 8, y2=height - 34, stroke=WIRE[0], stroke_dasharray="1 4")
            )
            marks.append(element("text", f"n{each.node_id}", x=x - 6, y=_TOP - 10, font_size=11, fill=MUTED[0]))
    return joined(marks)


def _legend(height: int) -> Markup:
    parts, x = [], _LEFT
    for word, fill in _FILLS.values():
        parts.append(element("rect", x=x, y=height - 26, width=12, height=12, fill=fill))
        parts.append(element("text", word, x=x + 16, y=height - 16, font_size=12, fill=TEXT[0]))
        x += 30 + 7 * len(word)
    parts.append(element("text", "line: log end · dotted: committed", x=x, y=height - 16, font_size=12, fill=TEXT[0]))
    return joined(parts)
