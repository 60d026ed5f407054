"""Somebody who holds memory of a pool."""

from __future__ import annotations

from ottla.broker.network.request import Close


class Holder:
    def __init__(self) -> None:
        self.is_fed = False
        self.closed: Close | None = None

    def feed(self) -> None:
        self.is_fed = True

    def close(self, reason: str | Close) -> None:
        assert isinstance(reason, Close)
        self.closed = reason
