"""The width of text in cells of a terminal, and the breaking of names into lines."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

BREAKS: Final = re.compile(r"(?<=[-._ /,:])(?=[^-._ /,:])")


def cells(text: str) -> int:
    """The width in cells: Chinese, Japanese and Korean characters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def printable(text: str) -> str:
    """The text without characters that would move the cursor or end a line."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text) or " "


def broken(text: str, width_max: int) -> tuple[str, ...]:
    """Lines of at most `width_max` cells, as few as possible, broken after a hyphen, a dot and the like if possible.

    They are as even as possible without breaking more words: a box is as wide as its longest line.
    """
    if cells(text) <= width_max:
        return (text.strip() or " ",)
    lines = _filled(text, width_max)
    widest = max(map(cells, lines))
    longest_word = max(cells(part.rstrip()) for part in BREAKS.split(text))
    narrowest = longest_word if longest_word <= width_max else 1
    while len(lines) > 1 and widest > narrowest:
        narrower = _filled(text, widest - 1)
        if len(narrower) > len(lines) or max(map(cells, narrower)) >= widest:
            break
        lines, widest = narrower, max(map(cells, narrower))
    return lines


def _filled(text: str, width_max: int) -> tuple[str, ...]:
    lines, width = [""], 0
    for part in BREAKS.split(text):
        if lines[-1] and width + cells(part.rstrip()) > width_max:
            lines.append("")
            width = 0
        part_width = cells(part)
        if width + part_width <= width_max:
            lines[-1] += part
            width += part_width
            continue
        for letter in part:
            letter_width = cells(letter)
            if width + letter_width > width_max and letter != " ":
                lines.append("")
                width = 0
            lines[-1] += letter
            width += letter_width
    return tuple(line.strip() for line in lines if line.strip()) or (" ",)
