"""A grid of cells for characters and lines. Lines of one net join where they meet; other lines cross."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.draw.flat import Point
from ottla.draw.text import cells

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
WIDE: Final = ""
"""Fills the cell after a character that is two cells wide."""


class Pen(NamedTuple):
    """The characters of a kind of line, by the sum of the sides of the cell that the line joins."""

    letters: Sequence[str]


def pen(upright: str, level: str, corners: str) -> Pen:
    """`corners` are up-right, right-down, up-left, down-left, then the four with three sides, and the cross."""
    up_right, right_down, up_left, down_left, no_left, no_up, no_right, no_down, cross = tuple(corners)
    letters = [" ", upright, level, up_right, upright, upright, right_down, no_left]
    letters += [level, up_left, level, no_down, down_left, no_right, no_up, cross]
    return Pen(tuple(letters))


LIGHT: Final = pen("│", "─", "└┌┘┐├┬┤┴┼")
DOTTED: Final = pen("┊", "┈", "└┌┘┐├┬┤┴┼")
ASCII: Final = pen("|", "-", "+++++++++")
ASCII_DOTTED: Final = pen(":", ".", "+++++++++")


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self._letters = [[" "] * width for _ in range(height)]
        self._styles = [[""] * width for _ in range(height)]
        self._crossed: dict[Point, dict[Hashable, tuple[int, Pen]]] = {}

    def put(self, x: int, y: int, text: str, style: str = "") -> None:
        for letter in text:
            width = cells(letter)
            if not width:
                self._letters[y][x - 1] += letter
                continue
            self._letters[y][x] = letter
            self._styles[y][x] = style
            if width == 2:
                self._letters[y][x + 1] = WIDE
            x += width

    def line(self, points: Sequence[Point], net: Hashable, pen: Pen) -> None:
        """Lines of one net join, lines of different nets cross."""
        for one, other in pairwise(points):
            for at, sides in _steps(one, other):
                nets = self._crossed.setdefault(at, {})
                nets[net] = (nets[net][0] | sides if net in nets else sides), pen

    def ink(self, style: str = "") -> None:
        """Turn the lines drawn so far into characters."""
        for (x, y), nets in self._crossed.items():
            sides, pen = _on_top(list(nets.values()))
            self.put(x, y, pen.letters[sides], style)
        self._crossed.clear()

    def rows(self, *, colour: bool) -> list[str]:
        rows = zip(self._letters, self._styles, strict=True)
        return [_row(letters, styles) if colour else "".join(letters).rstrip() for letters, styles in rows]


def _steps(one: Point, other: Point) -> Iterable[tuple[Point, int]]:
    (x, y), (end_x, end_y) = one, other
    step_x, step_y = (end_x > x) - (end_x < x), (end_y > y) - (end_y < y)
    ahead = RIGHT if step_x > 0 else LEFT if step_x < 0 else DOWN if step_y > 0 else UP
    behind = {UP: DOWN, DOWN: UP, LEFT: RIGHT, RIGHT: LEFT}[ahead]
    count = abs(end_x - x) + abs(end_y - y)
    for at in range(count + 1):
        yield (x + step_x * at, y + step_y * at), (behind if at else 0) | (ahead if at < count else 0)


def _on_top(lines: list[tuple[int, Pen]]) -> tuple[int, Pen]:
    """Where lines cross, the vertical one is drawn over the other, so that it does not look like a fork."""
    upright = [each for each in lines if each[0] == UP | DOWN]
    if upright and len(lines) > 1:
        return upright[0]
    sides = 0
    for each, _ in lines:
        sides |= each
    return sides, lines[0][1]


def _row(letters: Sequence[str], styles: Sequence[str]) -> str:
    """A row with its colours, without trailing spaces; every colour is switched off at its end."""
    end = len("".join(letter or "\0" for letter in letters).rstrip())
    found, style = "", ""
    for letter, wanted in zip(letters[:end], styles[:end], strict=True):
        if letter != WIDE and wanted != style:
            found += ("\x1b[0m" if style else "") + (f"\x1b[{wanted}m" if wanted else "")
            style = wanted
        found += letter
    return found + ("\x1b[0m" if style else "")
