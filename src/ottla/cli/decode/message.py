"""Shows one message, or a run of record batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import click

from ottla.cli.decode.input import DecodeInput
from ottla.cli.decode.printer import dissection_json, printer
from ottla.cli.failure import EXIT_BAD_INPUT, Failure
from ottla.explain.as_json import tree_json
from ottla.explain.dissect import Dissection, dissect, dissect_batches
from ottla.explain.guess import RECORD_BATCH, Candidate, Verdict, guess, guess_name, split_frames
from ottla.explain.redact import carries_secret
from ottla.explain.render.lines import Line, Styled, wrapped
from ottla.explain.show_exchange import versions_text
from ottla.explain.show_tree import tree_lines
from ottla.explain.values_text import count_text

ALTERNATIVES_MAX = 4
SURE = 0.9


class How(NamedTuple):
    """The form of the output."""

    as_json: bool
    verbose: bool
    width: int | None


def show(asked: DecodeInput, topic: str | None, how: How) -> int:
    """Show the message or the batches; returns the exit code, 2 for an incomplete message."""
    if asked.names == (RECORD_BATCH,):
        return _show_batches(asked, "as named", topic, how)
    several = None if asked.names else split_frames(asked.data)
    if several is not None:
        return max([_show_one(asked._replace(data=frame), topic, how) for frame in several])
    return _show_one(asked, topic, how)


def _show_one(asked: DecodeInput, topic: str | None, how: How) -> int:
    verdict = guess_name(asked.data, asked.names, asked.version) if asked.names else guess(asked.data)
    best = verdict.best
    if best is None:
        raise Failure(
            f"{len(asked.data)} bytes match no message",
            "name a message to decode as much as possible: NAME VERSION HEX",
        )
    if best.name == RECORD_BATCH:
        return _show_batches(asked, f"guessed, {verdict.phrase}", topic, how)
    if not asked.names:
        _refuse_secret(asked, verdict)
    taken_apart = dissect(asked.data, best.name, best.version, best.wrapping)
    _show_message(asked, verdict, taken_apart, how)
    if taken_apart.error is None:
        return 0
    left = f"; {count_text(taken_apart.rest_bytes, 'byte')} not decoded" if taken_apart.rest_bytes else ""
    click.echo(f"ottla decode: {best.name} v{best.version} is incomplete: {taken_apart.error}{left}", err=True)
    return EXIT_BAD_INPUT


def _refuse_secret(asked: DecodeInput, verdict: Verdict) -> None:
    """A guess may be wrong: bytes that may hold a secret are shown only if the user names the message."""
    if verdict.sureness >= SURE:
        return
    for other in verdict.candidates[1:]:
        taken_apart = dissect(asked.data, other.name, other.version, other.wrapping)
        if any(carries_secret(node) for node in taken_apart.nodes):
            best = verdict.candidates[0]
            raise Failure(
                f"this may be {best.name} or {other.name}, which holds a secret",
                f"name it to decode it: ottla decode {best.name} {best.version} ...",
            )


def _show_message(asked: DecodeInput, verdict: Verdict, taken_apart: Dissection, how: How) -> None:
    if how.as_json:
        is_named = bool(asked.names)
        click.echo(json.dumps(dissection_json(taken_apart, asked.data, verdict, is_named=is_named)))
        return
    out = printer(how.width)
    out.lines(_heading(asked, verdict, out.width))
    out.lines(tree_lines(taken_apart.nodes, asked.data, out.width, shows_marks=how.verbose))
    out.close()


def _heading(asked: DecodeInput, verdict: Verdict, width: int) -> Iterator[Line]:
    """The guessed message, how sure the guess is, and the alternatives."""
    best = verdict.candidates[0]
    said = "as named" if asked.names else f"guessed, {verdict.phrase}"
    pieces = [
        Styled(f"{best.name} {versions_text(best.versions)}", "title"),
        Styled(f", {count_text(len(asked.data), 'byte')}{_wrapping_text(best)} ({said})", "dim"),
    ]
    yield from wrapped(pieces, width)
    others = [f"{other.name} {versions_text(other.versions)}" for other in verdict.candidates[1 : 1 + ALTERNATIVES_MAX]]
    if others and not asked.names and verdict.sureness < SURE:
        yield from wrapped([Styled(f"could also be {', '.join(others)}", "warn")], width)


def _wrapping_text(best: Candidate) -> str:
    words = ["size"] if best.wrapping.has_size else []
    if best.wrapping.before != "nothing":
        words.append(best.wrapping.before)
    return f", after {' and '.join(words)}" if words else ""


def _show_batches(asked: DecodeInput, said: str, topic: str | None, how: How) -> int:
    nodes = dissect_batches(asked.data, topic)
    if how.as_json:
        for node in nodes:
            click.echo(json.dumps(tree_json(node)))
        return 0
    out = printer(how.width)
    out.lines([[Styled("Record batches", "title"), Styled(f", {count_text(len(asked.data), 'byte')} ({said})", "dim")]])
    for node in nodes:
        out.lines(tree_lines([node], asked.data, out.width, shows_marks=how.verbose))
    out.close()
    return 0
