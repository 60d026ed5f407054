"""When a broker that could not be connected to may be tried again.

A program that asks again and again, such as an observer, must not knock at a dead broker's door all the time. After a
failure the address is left alone for `reconnect_backoff_ms`, after each further one for twice as long. Who wants a
connection meanwhile gets BackingOffError at once; other brokers are asked as usual. With 0, which is the default, every
attempt is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.client.address import Address, Peer
from ottla.client.backoff import Backoff
from ottla.client.clock import monotonic_s
from ottla.client.errors import BackingOffError, ClientError

__all__ = ["Reconnects"]

SECOND_MS = 1000


class _Failing(NamedTuple):
    backoff: Backoff
    again_at_s: float
    error: ClientError


class Reconnects:
    def __init__(self, first_ms: float, max_ms: float, now_s: Callable[[], float] = monotonic_s) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._now_s = now_s
        self._failing: dict[Address, _Failing] = {}

    def check(self, peer: Peer) -> None:
        """BackingOffError if it is too early for another attempt."""
        failing = self._failing.get(peer.address)
        if failing is not None and self._now_s() < failing.again_at_s:
            raise BackingOffError(peer, failing.error, failing.again_at_s - self._now_s())

    def failed(self, peer: Peer, error: ClientError) -> None:
        if not self._first_ms:
            return
        known = self._failing.get(peer.address)
        backoff = Backoff(self._first_ms, self._max_ms) if known is None else known.backoff
        self._failing[peer.address] = _Failing(backoff, self._now_s() + backoff.next_ms() / SECOND_MS, error)

    def forget(self) -> None:
        """Whatever failed, the next attempt is made."""
        self._failing.clear()

    def succeeded(self, peer: Peer) -> None:
        self._failing.pop(peer.address, None)
