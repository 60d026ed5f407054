"""Runs `ottla proxy`."""

import asyncio
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ottla.cli.failure import Failure
from ottla.cli.proxy.address import Address
from ottla.cli.proxy.pcap import PcapWriter
from ottla.cli.proxy.relay import Relay
from ottla.cli.proxy.report import report_lines
from ottla.cli.proxy.show import OutputClosed, Show
from ottla.cli.proxy.watch import Watch
from ottla.cli.verbosity import note
from ottla.explain.stream import HOLD_BYTES
from ottla.explain.values_text import count_text

ANSWER_S = 2.0
"""How long the target may take to accept a connection at the start."""


class Options(NamedTuple):
    listen: Address
    target: Address
    show: Show
    save: Path | None


def run(options: Options) -> None:
    """Run until SIGINT or SIGTERM, or until the output is closed; then print the totals."""
    saved = _open(options.save)
    watch = Watch(options.show, note, saved)
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(_relay(options, watch))
    except OutputClosed as closed:
        if str(closed):
            note(f"the output cannot be written: {closed}")
    finally:
        _note_lines(_end_capture(saved, options.save))
    _note_lines(report_lines(watch))


async def _relay(options: Options, watch: Watch) -> None:
    await _look_up(options.target)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Control-C raises KeyboardInterrupt there
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    relay = Relay(options.listen, options.target, watch, hold_bytes=HOLD_BYTES)
    stopping: asyncio.Future[Any] = asyncio.create_task(stop.wait())
    try:
        await _note_unreachable(options.target)
        await asyncio.wait({stopping, relay.failed}, return_when=asyncio.FIRST_COMPLETED)
        if relay.failed.done():
            relay.failed.result()
    finally:
        stopping.cancel()
        await relay.close()


async def _look_up(target: Address) -> None:
    """An unknown host name is an error; a broker may still be down."""
    try:
        await asyncio.get_running_loop().getaddrinfo(target.host, target.port)
    except OSError as unknown:
        raise Failure(f"--to {target}: the host cannot be found ({unknown.strerror})") from None


async def _note_unreachable(target: Address) -> None:
    """Say so if the target does not accept connections yet."""
    try:
        async with asyncio.timeout(ANSWER_S):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except (OSError, TimeoutError) as refusal:
        reason = getattr(refusal, "strerror", None) or "no answer"
        note(f"{target} cannot be reached yet ({reason.lower()}); clients are closed until it can")
    else:
        writer.close()


def _open(path: Path | None) -> PcapWriter | None:
    if path is None:
        return None
    try:
        return PcapWriter(path)
    except OSError as refusal:
        raise Failure(f"--save {path}: {refusal.strerror}") from None


def _end_capture(saved: PcapWriter | None, path: Path | None) -> Iterator[str]:
    if saved is None:
        return
    try:
        saved.close()
    except OSError as refusal:
        yield f"the end of the capture cannot be written ({refusal.strerror}): {path}"
    else:
        yield f"{count_text(saved.packets, 'packet')} saved in {path}"


def _note_lines(lines: Iterable[str]) -> None:
    for line in lines:
        note(line)
