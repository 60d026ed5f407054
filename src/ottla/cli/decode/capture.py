"""`ottla decode --pcap`: the conversations in a packet capture, shown as they are found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from ottla.cli.decode.input import nearest_file
from ottla.cli.decode.printer import Printer, printer
from ottla.cli.failure import Failure
from ottla.cli.verbosity import is_quiet, note
from ottla.explain.capture import Capture, Notice, Seen, Tally
from ottla.explain.capture_file import CaptureError, RawPacket, read_packets
from ottla.explain.exchanges import Exchange, Loss
from ottla.explain.facts import Facts, TopicNames, exchange_facts
from ottla.explain.filters import Filters
from ottla.explain.render.lines import Styled
from ottla.explain.show_exchange import (
    cut,
    exchange_block,
    exchange_json,
    exchange_line,
    loss_json,
    loss_line,
)
from ottla.explain.values_text import count_text

if TYPE_CHECKING:
    from collections.abc import Callable

PACKETS_PER_UPDATE = 1_000


class Wanted(NamedTuple):
    """Filters and the form of the output."""

    ports: tuple[int, ...]
    filters: Filters
    as_json: bool
    verbose: bool
    width: int | None
    is_live: bool = False
    """Whether packets arrive while they are decoded, so that each line is flushed at once."""


class Sink(Protocol):
    """The output of what was found."""

    def exchange(self, seen: Seen, exchange: Exchange, facts: Facts) -> None: ...
    def loss(self, seen: Seen, loss: Loss) -> None: ...
    def notice(self, notice: Notice) -> None: ...
    def close(self) -> None: ...


class Counts:
    """How many exchanges were found and how many were shown."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.shown = 0
        self.lost_bytes = 0
        self.passed_bytes = 0


def show_capture(name: str, wanted: Wanted) -> int:
    """Show a capture and print a summary on standard error at the end."""
    topic_names = TopicNames()
    sink: Sink = JsonSink(wanted, topic_names) if wanted.as_json else TextSink(wanted, topic_names)
    capture, counts = Capture(wanted.ports), Counts()
    try:
        with _opened(name) as (file, size), _progress(name, size, wanted) as update:
            for seen in capture.read(_counted(_packets(file, name), update)):
                _show(seen, wanted.filters, topic_names, sink, counts)
            sink.close()
    except CaptureError as broken:
        sink.close()
        raise Failure(f"{name} is {broken}", f"{count_text(counts.shown, 'exchange')} before that are shown") from None
    _sum_up(name, capture.tally, counts, wanted)
    return 0


def _show(seen: Seen | Notice, filters: Filters, topic_names: TopicNames, sink: Sink, counts: Counts) -> None:
    if isinstance(seen, Notice):
        sink.notice(seen)
        return
    if isinstance(seen.event, Loss):
        counts.lost_bytes += seen.event.lost_bytes
        counts.passed_bytes += seen.event.passed_bytes
        if filters.is_empty:
            sink.loss(seen, seen.event)
        return
    counts.exchanges += 1
    # Collect facts of hidden exchanges, too: topic names are learned from all of them.
    facts = exchange_facts(seen.event, topic_names)
    if filters.admits(seen.event, facts):
        counts.shown += 1
        sink.exchange(seen, seen.event, facts)


class TextSink:
    """Prints lines, or blocks with --verbose."""

    def __init__(self, wanted: Wanted, topic_names: TopicNames) -> None:
        self._out: Printer = printer(wanted.width, is_live=wanted.is_live)
        self._verbose = wanted.verbose
        self._topic_names = topic_names

    def exchange(self, seen: Seen, exchange: Exchange, facts: Facts) -> None:
        width = self._out.width
        if self._verbose:
            self._out.lines(exchange_block(exchange, facts, seen.label, width, self._topic_names))
        else:
            self._out.lines([exchange_line(exchange, facts, seen.label, width)])

    def loss(self, seen: Seen, loss: Loss) -> None:
        self._out.lines([loss_line(loss, seen.label, self._out.width)])

    def notice(self, notice: Notice) -> None:
        text = f"{notice.label.client} → {notice.label.broker}: {notice.text}"
        self._out.lines([cut([Styled(text, "warn")], self._out.width)])

    def close(self) -> None:
        self._out.close()


class JsonSink:
    """Prints one JSON object per message and line."""

    def __init__(self, wanted: Wanted, topic_names: TopicNames) -> None:
        self._verbose = wanted.verbose
        self._is_live = wanted.is_live
        self._topic_names = topic_names

    def exchange(self, seen: Seen, exchange: Exchange, facts: Facts) -> None:
        for found in exchange_json(exchange, facts, seen.label, self._topic_names, with_records=self._verbose):
            self._write(found)

    def loss(self, seen: Seen, loss: Loss) -> None:
        self._write(loss_json(loss, seen.label))

    def notice(self, notice: Notice) -> None:
        label = notice.label
        self._write({"kind": "notice", "client": label.client, "broker": label.broker, "text": notice.text})

    def _write(self, found: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(found) + "\n")
        if self._is_live:
            sys.stdout.flush()

    def close(self) -> None:
        sys.stdout.flush()


# --- reading ----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file and its size, if it has one."""
    if name == "-":
        yield sys.stdin.buffer, None
        return
    try:
        size = Path(name).stat().st_size
        file = Path(name).open("rb")  # noqa: SIM115  (what the caller raises is not ours to explain)
    except OSError as refusal:
        raise Failure(f"cannot read {name}: {refusal.strerror}", nearest_file(name)) from None
    with file:
        yield file, size or None


def _packets(file: BinaryIO, name: str) -> Iterator[RawPacket]:
    try:
        return read_packets(file)
    except CaptureError as refusal:
        raise Failure(f"{name}: {refusal}", "make one with tcpdump -w FILE, or ottla proxy --save FILE") from None


def _counted(packets: Iterator[RawPacket], update: Callable[[int], None]) -> Iterator[RawPacket]:
    """The packets; calls `update` regularly with how far the file has been read."""
    for number, packet in enumerate(packets):
        if number % PACKETS_PER_UPDATE == 0:
            update(packet.end)
        yield packet


@contextmanager
def _progress(name: str, size: int | None, wanted: Wanted) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if that is a terminal and standard output does not print JSON there."""
    if is_quiet() or not sys.stderr.isatty() or (wanted.as_json and sys.stdout.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        # If both are the same terminal, lines must be printed above the bar; lines to a file must bypass it.
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(Path(name).name, total=size)
        yield lambda position: bar.update(task, completed=position)


def _sum_up(name: str, tally: Tally, counts: Counts, wanted: Wanted) -> None:
    """One line about the capture, which also explains an empty output."""
    if tally.unknown_links and not tally.segment_count:
        from ottla.explain.capture_packet import LINK_TYPES

        kinds = ", ".join(map(str, sorted(tally.unknown_links)))
        known = ", ".join(dict.fromkeys(LINK_TYPES.values()))
        raise Failure(f"{name} has packets of link type {kinds}", f"supported are {known}")
    words = [count_text(counts.exchanges, "exchange")]
    if counts.shown != counts.exchanges:
        words[0] = f"{counts.shown:,} of {words[0]}"
    words[0] += f" on {count_text(tally.connection_count, 'connection')}"
    words.append(count_text(tally.packet_count, "packet"))
    if tally.tls_count:
        words.append(f"{count_text(tally.tls_count, 'connection')} with TLS, not readable")
    if tally.foreign_count:
        words.append(f"{count_text(tally.foreign_count, 'other TCP connection')}")
    if counts.lost_bytes:
        words.append(f"{count_text(counts.lost_bytes, 'byte')} missing")
    if not tally.connection_count and wanted.ports:
        words.append(f"nothing on port {', '.join(map(str, wanted.ports))}")
    note(f"ottla decode: {', '.join(words)}")
