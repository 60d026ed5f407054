"""Counts the connections that the broker itself closed, and names their clients in the log.

A client whose connection is closed gets no response that says why; the reason is in the log. Idle connections are
counted and not named, because clients expect to lose them. Connections that the client, the network or the end of the
node closed are neither counted nor named.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Close, CloseCause

if TYPE_CHECKING:
    from ottla.broker.network.connection import Peer

__all__ = ["ClosedConnections"]

log = logging.getLogger(__name__)

_TEXT_CHARS_MAX: Final = 200


class ClosedConnections:
    def __init__(self) -> None:
        self.counts: Counter[tuple[str, CloseCause]] = Counter()
        """By listener and cause."""

    def add(self, peer: Peer, client_id: str, reason: Close) -> None:
        """A connection is closed; `client_id` is empty where no request has told it."""
        cause = reason.cause
        if cause is None:
            return
        self.counts[peer.listener, cause] += 1
        if cause is CloseCause.IDLE:
            return
        client = f"client {client_id[:_TEXT_CHARS_MAX]!r}" if client_id else "a client"
        who = f"{client} at {peer.host} on {peer.listener}"
        log.warning(f"%s was closed: %s [{cause}]", who, _printable(str(reason)), extra={"cause": who})

    def samples(self, listeners: Iterable[str]) -> Iterator[tuple[str, dict[str, object], float]]:
        """All causes, those that never occurred, too: a rate needs a first value."""
        for listener in listeners:
            for cause in CloseCause:
                labels: dict[str, object] = {"listener": listener, "cause": cause}
                yield "ottla_closed_connections_total", labels, self.counts[listener, cause]


def _printable(text: str) -> str:
    """A text that may repeat what a client has sent, for one line of the log."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:_TEXT_CHARS_MAX])
