"""`ottla proxy` from its options to its last line."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from ottla.cli.failure import Failure
from ottla.cli.proxy.address import Address
from ottla.cli.proxy.pcap import PcapWriter
from ottla.cli.proxy.relay import Relay
from ottla.cli.proxy.report import report_lines
from ottla.cli.proxy.watch import Show, Watch
from ottla.explain.facts import Facts, TopicNames
from ottla.explain.filters import Filters
from ottla.explain.pairing import Exchange
from ottla.explain.render.terminal import WIDTH_DEFAULT, print_lines
from ottla.explain.show_exchange import Label, exchange_block, exchange_json, exchange_line
from ottla.explain.stream import HOLD_BYTES
from ottla.explain.values_text import count_text


class Options(NamedTuple):
    listen: Address
    target: Address
    filters: Filters
    as_json: bool
    verbose: bool
    save: Path | None


class OutputClosed(Exception):
    """Nobody reads our standard output any more, as after `| head`."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the program here, and the sums would never be shown."""
        raise BrokenPipeError


def run(options: Options) -> None:
    """Until SIGINT or SIGTERM comes or the output is closed; then the sums."""
    topic_names = TopicNames()
    saved = _open(options.save)
    watch = Watch(_shower(options, topic_names), _note, topic_names, options.filters, saved)
    try:
        with suppress(KeyboardInterrupt, OutputClosed):
            asyncio.run(_relay(options, watch))
    finally:
        if saved is not None:
            saved.close()
    for line in report_lines(watch):
        _note(line)
    if saved is not None:
        _note(f"{count_text(saved.packets, 'packet')} saved in {options.save}")


async def _relay(options: Options, watch: Watch) -> None:
    await _look_up(options.target)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Control-C raises KeyboardInterrupt there
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    relay = Relay(options.listen, options.target, watch, hold_bytes=HOLD_BYTES)
    stopping: asyncio.Future[Any] = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({stopping, relay.failed}, return_when=asyncio.FIRST_COMPLETED)
        if relay.failed.done():
            relay.failed.result()
    finally:
        stopping.cancel()
        await relay.close()


async def _look_up(target: Address) -> None:
    """A name that nobody knows is a mistake; a broker that is not up yet may come."""
    try:
        await asyncio.get_running_loop().getaddrinfo(target.host, target.port)
    except OSError as unknown:
        raise Failure(f"--to {target}: the host cannot be found ({unknown.strerror})") from None


def _open(path: Path | None) -> PcapWriter | None:
    if path is None:
        return None
    try:
        return PcapWriter(path)
    except OSError as refusal:
        raise Failure(f"--save {path}: {refusal.strerror}") from None


# --- what is shown ----------------------------------------------------------------------------------------------------


def _shower(options: Options, topic_names: TopicNames) -> Show:
    if options.as_json:
        return _json_shower(topic_names)
    console = _Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    width = console.width if console.is_terminal else WIDTH_DEFAULT

    def show(exchange: Exchange, facts: Facts, label: Label) -> None:
        if options.verbose:
            lines = list(exchange_block(exchange, facts, label, width, topic_names))
        else:
            lines = [exchange_line(exchange, facts, label, width)]
        _written(lambda: print_lines(lines, console))

    return show


def _json_shower(topic_names: TopicNames) -> Show:
    def show(exchange: Exchange, facts: Facts, label: Label) -> None:
        messages = exchange_json(exchange, facts, label, topic_names, with_records=True)
        text = "".join(json.dumps(message) + "\n" for message in messages)
        _written(lambda: click.echo(text, nl=False))

    return show


def _written(write: Callable[[], None]) -> None:
    try:
        write()
    except BrokenPipeError:
        # What is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputClosed from None


def _note(text: str) -> None:
    click.echo(text, err=True)
