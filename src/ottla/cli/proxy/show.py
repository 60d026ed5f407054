"""Prints exchanges on standard output, in the same way as those of a capture.

Writing waits for a slow reader, and so does the traffic: the output is complete, and memory does not grow.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.decode.capture import JsonSink, Sink, TextSink, Wanted
from ottla.explain.capture import Seen
from ottla.explain.exchanges import Exchange
from ottla.explain.facts import Facts, TopicNames
from ottla.explain.filters import Filters
from ottla.explain.show_exchange import Label


class OutputClosed(Exception):
    """Standard output is closed. The reason is empty if its reader has ended, as with `| head`."""


class Show:
    """Shows the exchanges that match the filters, as lines, blocks or JSON."""

    def __init__(
        self, filters: Filters, *, as_json: bool = False, verbose: bool = False, width: int | None = None
    ) -> None:
        self.filters = filters
        self.topic_names = TopicNames()
        wanted = Wanted((), filters, as_json, verbose, width)
        make_sink = JsonSink if as_json else TextSink
        self._sink: Sink = make_sink(wanted, self.topic_names)

    def exchange(self, exchange: Exchange, facts: Facts, label: Label) -> None:
        with _output():
            self._sink.exchange(Seen(label, exchange), exchange, facts)

    def flush(self) -> None:
        """Flush the output."""
        with _output():
            self._sink.close()


@contextmanager
def _output() -> Iterator[None]:
    """Distinguishes errors of the output from those of a connection, which have the same exceptions."""
    try:
        yield
    except OSError as refusal:
        # The remaining buffer must not raise again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputClosed("" if isinstance(refusal, BrokenPipeError) else refusal.strerror) from None
