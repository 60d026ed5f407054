"""Exchanges on standard output: a line, a block with all fields, or JSON.

Writing waits for a slow reader, and the traffic with it: what is shown is complete, and memory does not grow.
"""

import json
import os
import sys
from collections.abc import Callable

import click
from rich.console import Console

from ottla.explain.facts import Facts, TopicNames
from ottla.explain.pairing import Exchange
from ottla.explain.render.lines import Line
from ottla.explain.render.terminal import WIDTH_DEFAULT, print_lines
from ottla.explain.show_exchange import Label, exchange_block, exchange_json, exchange_line

Show = Callable[[Exchange, Facts, Label], None]

LINE_WIDTH_MAX = 1_000
"""Where no terminal sets a width, a line is as long as it has to be."""


class OutputClosed(Exception):
    """Standard output takes no more. The reason is empty where nobody reads it any longer, as after `| head`."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the program here, and the sums would never be shown."""
        raise BrokenPipeError


def json_shower(topic_names: TopicNames) -> Show:
    """One object per message and line."""

    def show(exchange: Exchange, facts: Facts, label: Label) -> None:
        for message in exchange_json(exchange, facts, label, topic_names, with_records=True):
            _write(json.dumps(message) + "\n")

    return show


def line_shower() -> Show:
    """One line per exchange."""
    width, put = _printer(LINE_WIDTH_MAX)

    def show(exchange: Exchange, facts: Facts, label: Label) -> None:
        put([exchange_line(exchange, facts, label, width)])

    return show


def block_shower(topic_names: TopicNames) -> Show:
    """Every field with its bytes."""
    width, put = _printer(WIDTH_DEFAULT)

    def show(exchange: Exchange, facts: Facts, label: Label) -> None:
        put(list(exchange_block(exchange, facts, label, width, topic_names)))

    return show


def _printer(width_elsewhere: int) -> tuple[int, Callable[[list[Line]], None]]:
    """The width to use and what prints lines: in colour on a terminal, else plain, which is far quicker."""
    console = _Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.is_terminal:
        return console.width, lambda lines: _guarded(lambda: print_lines(lines, console))
    return width_elsewhere, lambda lines: _write("".join(_plain(line) for line in lines))


def _plain(line: Line) -> str:
    return "".join(piece.text for piece in line).rstrip() + "\n"


def _write(text: str) -> None:
    _guarded(lambda: click.echo(text, nl=False))


def _guarded(write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as refusal:
        # What is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputClosed("" if isinstance(refusal, BrokenPipeError) else refusal.strerror) from None
