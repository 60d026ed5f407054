"""The printer of `ottla decode`: lines in colour on a terminal, plain elsewhere, and the JSON of one message."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ottla.cli.printable import printable
from ottla.explain.as_json import body_json, tree_json
from ottla.explain.dissect import Dissection
from ottla.explain.guess import Candidate, Verdict
from ottla.explain.render.lines import Line
from ottla.explain.render.terminal import WIDTH_DEFAULT, print_lines
from ottla.explain.show_exchange import error_json

if TYPE_CHECKING:
    from rich.console import Console

LINES_HELD_MAX = 200


class Printer:
    """Prints lines to standard output, many at a time. What messages hold may be anything, so control characters in it
    are escaped."""

    def __init__(self, console: Console, held_max: int) -> None:
        self.console = console
        self.width = console.width
        self._held_max = held_max
        self._held: list[Line] = []

    def lines(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._held.append([piece._replace(text=printable(piece.text)) for piece in line])
            if len(self._held) >= self._held_max:
                self.flush()

    def flush(self) -> None:
        held, self._held = self._held, []
        if not held:
            return
        if self.console.is_terminal:
            print_lines(held, self.console)
        else:  # without colours, printing directly is faster than rich
            text = "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in held)
            sys.stdout.write(text)
            if self._held_max <= 1:
                sys.stdout.flush()

    def close(self) -> None:
        self.flush()
        sys.stdout.flush()


def printer(width: int | None, *, is_live: bool = False) -> Printer:
    """A printer with the colours and the width of the terminal, or for a file, with 100 columns.

    `is_live` flushes every line at once, for input that arrives while it is decoded.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if width is None and not console.is_terminal:
        width = WIDTH_DEFAULT
    if width is not None:
        console.width = width
    return Printer(console, 1 if is_live else LINES_HELD_MAX)


def dissection_json(taken_apart: Dissection, data: bytes, verdict: Verdict, *, is_named: bool) -> dict[str, Any]:
    """One message: its name and how sure the guess is, its content, and its tree with positions."""
    best = verdict.candidates[0]
    *before, body = taken_apart.nodes if taken_apart.nodes else [None]
    found: dict[str, Any] = {
        "message": taken_apart.name,
        "version": taken_apart.version,
        "versions": list(best.versions),
        "size_bytes": len(data),
        "has_size": best.wrapping.has_size,
        "before": best.wrapping.before,
        "guess": None if is_named else _guess_json(verdict),
        "header": {node.name: body_json(node) for node in before if node is not None},
        "body": None if body is None or taken_apart.error else body_json(body),
        "tree": [tree_json(node) for node in taken_apart.nodes],
    }
    if taken_apart.error is not None:
        found["error"] = error_json(taken_apart.error)
        found["rest_bytes"] = taken_apart.rest_bytes
    return found


def _guess_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "sureness": round(verdict.sureness, 4),
        "phrase": verdict.phrase,
        "candidates": [_candidate_json(candidate) for candidate in verdict.candidates],
    }


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    return {
        "message": candidate.name,
        "versions": list(candidate.versions),
        "before": candidate.wrapping.before,
        "gain_bits": round(candidate.gain_bits, 1),
    }
