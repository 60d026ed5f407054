"""A bound on the memory of all requests that are being received (queued.max.request.bytes).

A connection asks for the whole size of a request when the request's first bytes arrive. The last request that is
granted may exceed the bound, so a granted request can always be completed and no connection waits for ever. A
connection that is not granted is not read from until others have given memory back. One that holds memory for long
while others wait is closed. Requests that arrive in one read are not counted; the number of connections bounds them.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ottla.broker.network.request import Close, CloseCause

__all__ = ["DEFAULT_BYTES", "HELD_MAX_MS", "Holder", "MemoryPool"]

DEFAULT_BYTES: Final = 512 * 1024 * 1024
"""The default. Apache Kafka has no bound unless one is set."""
HELD_MAX_MS: Final = 30_000


class Holder(Protocol):
    """A connection that receives a large request."""

    def feed(self) -> None:
        """There is memory again: ask once more."""

    def close(self, reason: str | Close) -> None: ...


class _Held(NamedTuple):
    size_bytes: int
    since_ms: int


class MemoryPool:
    """The bytes in use, the connections that hold them, and the connections that wait for some."""

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[Holder, _Held] = {}
        self._waiting: dict[Holder, None] = {}
        self.used_bytes = 0

    def take(self, who: Holder, size_bytes: int, now_ms: int) -> bool:
        """Whether the memory is granted; if not, `feed` is called when there is some."""
        if self.used_bytes >= self._limit_bytes:
            self._waiting[who] = None
            return False
        self._held[who] = _Held(size_bytes, now_ms)
        self.used_bytes += size_bytes
        return True

    def give_back(self, who: Holder) -> None:
        """A connection has finished its request, or is closed."""
        self._waiting.pop(who, None)
        held = self._held.pop(who, None)
        if held is None:
            return
        self.used_bytes -= held.size_bytes
        while self._waiting and self.used_bytes < self._limit_bytes:
            holder = next(iter(self._waiting))
            del self._waiting[holder]
            holder.feed()

    def expire(self, now_ms: int) -> None:
        """Close the connections that have held memory for too long while others wait."""
        if not self._waiting:
            return
        late = [who for who, held in self._held.items() if now_ms - held.since_ms > HELD_MAX_MS]
        for who in late:
            reason = "its request was incomplete for too long while others wait for memory"
            who.close(Close(reason, CloseCause.UNFINISHED_REQUEST))
