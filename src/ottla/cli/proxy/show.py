"""Exchanges on standard output, printed by what prints those of a capture, so that both look alike.

Writing waits for a slow reader, and the traffic with it: what is shown is complete, and memory does not grow.
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
    """Standard output takes no more. The reason is empty where nobody reads it any longer, as after `| head`."""


class Show:
    """What is shown: exchanges that the filters let pass, as lines, blocks or JSON."""

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
        """Put on the screen what was shown since the last time."""
        with _output():
            self._sink.close()


@contextmanager
def _output() -> Iterator[None]:
    """Trouble with the output is not trouble with a connection, though Python gives both the same exceptions."""
    try:
        yield
    except OSError as refusal:
        # What is still buffered must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputClosed("" if isinstance(refusal, BrokenPipeError) else refusal.strerror) from None
