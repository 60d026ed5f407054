"""What a share group has in flight in a partition, as one row of ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.console.html.navigation import walked
from ottla.draw.markup import NOTHING, Markup, element
from ottla.health.phrases import plural

__all__ = ["LOOKS", "Piece", "merged", "window_plot"]

WIDTH: Final = 1_200
HEIGHT: Final = 30
RECTS_MAX: Final = 1_200
NARROWEST: Final = 2.0
LETTER_ROOM: Final = 12
MIXED: Final = "mixed"


class Piece(NamedTuple):
    """A range of offsets, or several neighbours that are drawn as one."""

    first: int
    last: int
    state: str
    deliveries: int | None = None
    ranges: int = 1


class Look(NamedTuple):
    """Letter and pattern of a state, so that nothing depends on colour."""

    letter: str
    pattern: str
    """The path that is drawn over the colour; "" for a plain one."""


LOOKS: Final = {
    "acquired": Look("A", ""),
    "available": Look("V", "M0,8L8,0"),
    "acknowledged": Look("✓", "M2,4h1M6,4h1"),
    "archiving": Look("x", "M0,0L8,8"),
    "archived": Look("✕", "M0,0L8,8M0,8L8,0"),
    "unknown": Look("?", "M4,0V8"),
    MIXED: Look("*", "M0,4H8"),
}


def merged(pieces: Sequence[Piece], most: int = RECTS_MAX) -> list[Piece]:
    """At most so many pieces: alike neighbours become one, and then as many neighbours as it takes."""
    alike: list[Piece] = []
    for each in pieces:
        last = alike[-1] if alike else None
        if last is not None and (last.last + 1, last.state, last.deliveries) == (
            each.first,
            each.state,
            each.deliveries,
        ):
            alike[-1] = last._replace(last=each.last, ranges=last.ranges + each.ranges)
        else:
            alike.append(each)
    size = -(-len(alike) // most)
    return [_one(alike[at : at + size]) for at in range(0, len(alike), size)] if size > 1 else alike


def _one(some: Sequence[Piece]) -> Piece:
    states = {each.state for each in some}
    counts = [each.deliveries for each in some if each.deliveries is not None]
    state = states.pop() if len(states) == 1 else MIXED
    return Piece(some[0].first, some[-1].last, state, max(counts, default=None), sum(each.ranges for each in some))


def window_plot(pieces: Sequence[Piece], title: str, address_of: Callable[[Piece], str]) -> Markup:
    """The scale is linear from the first offset to the last; a range that would be hard to see is drawn wider.

    Each piece leads to its records. Only the first is reached with the Tab key; the arrow keys go on from there.
    """
    if not pieces:
        return NOTHING
    drawn = merged(pieces)
    states = [each for each in LOOKS if any(piece.state == each for piece in drawn)]
    first, last = drawn[0].first, drawn[-1].last
    inner = [
        element("a", *_rect(each, first, last), href=address_of(each), tabindex="-1" if at else None)
        for at, each in enumerate(drawn)
    ]
    picture = element(
        "svg",
        element("title", title),
        element("defs", *map(_pattern, states)),
        *inner,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="group",
        aria_label=title,
        class_="window",
    )
    # The drawing shrinks with the page; these words do not.
    ends = element("p", element("span", f"{first:,}"), element("span", f"{last:,}"), class_="ends")
    scrolled = element("div", picture, ends, class_="scroll", role="region", aria_label=title, tabindex="0")
    walk = walked(scrolled, "Arrow keys go from range to range, Enter opens the records of one.")
    return element("figure", walk, element("ul", *map(_legend, states), class_="legend"))


def place(piece: Piece, first: int, last: int) -> tuple[float, float, bool]:
    """Where a piece begins, how wide it is, and whether it is drawn wider than it is."""
    scale = WIDTH / (last - first + 1)
    width = (piece.last - piece.first + 1) * scale
    shown = max(NARROWEST, width)
    return min((piece.first - first) * scale, WIDTH - shown), shown, width < NARROWEST


def _rect(piece: Piece, first: int, last: int) -> Iterator[Markup]:
    x, width, is_widened = place(piece, first, last)
    told = f"{span(piece.first, piece.last)}: {piece.state}"
    told += "" if piece.deliveries is None else f", delivered {plural(piece.deliveries, 'time')}"
    told += f", {piece.ranges} ranges" if piece.ranges > 1 else ""
    told += " (drawn wider: ≥ 2 px)" if is_widened else ""
    yield element("title", told)
    yield element(
        "rect", x=f"{x:.1f}", y=2, width=f"{width:.1f}", height=26,
        fill=f"url(#window-{piece.state})", class_="range",
    )  # fmt: skip
    if width >= LETTER_ROOM:
        yield element(
            "text", LOOKS[piece.state].letter, x=f"{x + width / 2:.1f}", y=20, text_anchor="middle", class_="letter"
        )


def _pattern(state: str) -> Markup:
    marks = LOOKS[state].pattern
    return element(
        "pattern",
        element("rect", width=8, height=8, class_=f"fill-{state}"),
        element("path", d=marks, class_="hatch") if marks else None,
        id=f"window-{state}",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
    )


def _legend(state: str) -> Markup:
    swatch = element(
        "svg", element("rect", width=16, height=12, fill=f"url(#window-{state})", class_="range"), viewBox="0 0 16 12",
        width=16, height=12, aria_hidden="true",
    )  # fmt: skip
    return element("li", swatch, f" {LOOKS[state].letter} {state}")


def span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"
