"""A bound on the memory that requests under way may take together (queued.max.request.bytes).

It is asked for a request's whole size when its first bytes have come, and may be overdrawn by one: who was granted can
always finish, so nobody waits for ever. Who was not is not read from until others have been handled. Who holds room for
long without finishing, while others wait for it, is closed. Requests that fit into one read are not counted; they are
bounded by the number of connections.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ottla.broker.network.request import Close, CloseCause

__all__ = ["DEFAULT_BYTES", "HELD_MAX_MS", "Budget", "Holder"]

DEFAULT_BYTES: Final = 512 * 1024 * 1024
"""Where nothing was set. Apache Kafka has no bound then."""
HELD_MAX_MS: Final = 30_000


class Holder(Protocol):
    """A connection."""

    def feed(self) -> None:
        """There is room again: ask once more."""

    def close(self, reason: str | Close) -> None: ...


class _Held(NamedTuple):
    size_bytes: int
    since_ms: int


class Budget:
    """Bytes that may be in use, who has them, and who waits for some."""

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[Holder, _Held] = {}
        self._waiting: dict[Holder, None] = {}
        self.used_bytes = 0

    def take(self, who: Holder, size_bytes: int, now_ms: int) -> bool:
        """Whether there is room; if not, it is told when there is."""
        if self.used_bytes >= self._limit_bytes:
            self._waiting[who] = None
            return False
        self._held[who] = _Held(size_bytes, now_ms)
        self.used_bytes += size_bytes
        return True

    def give_back(self, who: Holder) -> None:
        """Somebody has finished, or does not want anything any more."""
        self._waiting.pop(who, None)
        held = self._held.pop(who, None)
        if held is None:
            return
        self.used_bytes -= held.size_bytes
        while self._waiting and self.used_bytes < self._limit_bytes:
            waiter = next(iter(self._waiting))
            del self._waiting[waiter]
            waiter.feed()

    def expire(self, now_ms: int) -> None:
        """Close who has held room for too long while others wait."""
        if not self._waiting:
            return
        late = [who for who, held in self._held.items() if now_ms - held.since_ms > HELD_MAX_MS]
        for who in late:
            reason = "its request was not whole in time, and others wait for the room that it takes"
            who.close(Close(reason, CloseCause.UNFINISHED_REQUEST))
