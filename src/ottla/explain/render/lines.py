"""Styled text in lines and columns, for the terminal renderer.

A line is a list of pieces with the name of their style. All widths are computed here, so that no line is wider than
asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ottla.explain.page import Prose


class Styled(NamedTuple):
    text: str
    style: str = ""


Line = list[Styled]

_PIECES = re.compile(r"\s+|\S+")
_WIDTH_MIN = 8


def width_of(line: Line) -> int:
    return sum(len(piece.text) for piece in line)


def prose(text: Prose, style: str = "", link: str = "link") -> Line:
    return [Styled(piece.text, link if piece.target else style) for piece in text]


def wrapped(pieces: Iterable[Styled], width: int) -> list[Line]:
    """The pieces in lines of at most `width`, broken between words, or inside a word that is longer than a line.

    Pieces without a space between them are one word: a comma stays with the link before it.
    """
    width = max(width, _WIDTH_MIN)
    lines: list[Line] = [[]]
    room = width
    for gap, word in _words(pieces):
        size = width_of(word)
        if lines[-1] and len(gap.text) + size > room:
            lines.append([])
            room = width
        if lines[-1] and gap.text:
            lines[-1].append(gap)
            room -= len(gap.text)
        for part in _cut(word, room, width):
            if width_of(part) > room:
                lines.append([])
                room = width
            lines[-1] += part
            room -= width_of(part)
    return lines


def _words(pieces: Iterable[Styled]) -> Iterator[tuple[Styled, Line]]:
    """Each word with the space before it."""
    gap, word = Styled(""), list[Styled]()
    for text, style in pieces:
        for match in _PIECES.finditer(text):
            if not match[0].isspace():
                word.append(Styled(match[0], style))
                continue
            if word:
                yield gap, word
                word = []
            gap = Styled(match[0], style)
    if word:
        yield gap, word


def _cut(word: Line, room: int, width: int) -> Iterator[Line]:
    """The whole word if it fits in a line, else pieces: one for the rest of the line, then full lines."""
    if width_of(word) <= width:
        yield word
        return
    letters = [Styled(letter, style) for text, style in word for letter in text]
    at = room
    yield merged(letters[:room])
    while at < len(letters):
        yield merged(letters[at : at + width])
        at += width


def merged(pieces: Line) -> Line:
    """Neighbours of one style as one piece."""
    runs = groupby(pieces, lambda piece: piece.style)
    return [Styled("".join([piece.text for piece in run]), style) for style, run in runs]


def indented(lines: Iterable[Line], indent: int) -> list[Line]:
    return [[Styled(" " * indent), *line] if line else [] for line in lines]


def fitted(head: Line, width: int) -> list[Line]:
    """A line as it is, or broken where it is too wide."""
    return [head] if width_of(head) <= width else wrapped(head, width)


def hanging_indent(head: Line, body: Iterable[Styled], width: int, indent: int) -> list[Line]:
    """A paragraph with `head` before its first line; all other lines begin at `indent`."""
    lines = wrapped(body, width - indent)
    gap = indent - width_of(head)
    if gap < 1:
        return [*fitted(head, width), *indented(lines, indent)]
    return [[*head, Styled(" " * gap), *lines[0]], *indented(lines[1:], indent)]


def columns(rows: Sequence[Sequence[list[Line]]], widths: Sequence[int], gap: int = 2) -> list[Line]:
    """Cells below each other; each cell is a list of lines that fit into its column."""
    lines: list[Line] = []
    for cells in rows:
        height = max(map(len, cells))
        padded = [[*cell, *[[]] * (height - len(cell))] for cell in cells]
        lines += [_joined(row, widths, gap) for row in zip(*padded, strict=True)]
    return lines


def _joined(cells: Sequence[Line], widths: Sequence[int], gap: int) -> Line:
    line: Line = []
    pending = 0
    for cell, width in zip(cells, widths, strict=True):
        if cell:
            if pending:
                line.append(Styled(" " * pending))
            line += cell
            pending = 0
        pending += width - width_of(cell) + gap
    return line


def json_lines(value: Any, width: int) -> list[Line]:
    """Formatted JSON: values that fit are on one line; a long text is broken at the width."""
    return [folded for line in _json(value, width, 0, []) for folded in _folded(line, width)]


def _folded(line: Line, width: int) -> list[Line]:
    """A line that is still too wide, because of a long text or deep nesting, broken anywhere."""
    if width_of(line) <= width:
        return [line]
    indent = len(line[0].text) if line and line[0].text.isspace() else 0
    rest = line[1:] if indent else line
    return indented(wrapped(rest, width - indent), indent)


def _json(value: Any, width: int, indent: int, head: Line) -> list[Line]:
    flat = _flat(value)
    start = [Styled(" " * indent), *head] if indent else head
    if indent + width_of(head) + width_of(flat) + 1 <= width or not isinstance(value, dict | list) or not value:
        return [[*start, *flat]]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    lines = [[*start, Styled(opening, "mark")]]
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    for index, (key, item) in enumerate(items):
        inner = _json(item, width, indent + 2, [] if key is None else _key(key))
        if index < len(items) - 1:
            inner[-1].append(Styled(",", "mark"))
        lines += inner
    return [*lines, [Styled(" " * indent), Styled(closing, "mark")] if indent else [Styled(closing, "mark")]]


def _key(key: str) -> Line:
    return [Styled(json.dumps(key), "name"), Styled(": ", "mark")]


def _flat(value: Any) -> Line:
    if isinstance(value, dict):
        inner = [[*_key(key), *_flat(item)] for key, item in value.items()]
        return [Styled("{", "mark"), *_comma_separated(inner), Styled("}", "mark")]
    if isinstance(value, list):
        return [Styled("[", "mark"), *_comma_separated([_flat(item) for item in value]), Styled("]", "mark")]
    style = "string" if isinstance(value, str) else "number"
    return [Styled(json.dumps(value, ensure_ascii=False), style)]


def _comma_separated(parts: Sequence[Line]) -> Iterator[Styled]:
    for index, part in enumerate(parts):
        if index:
            yield Styled(", ", "mark")
        yield from part
