"""A bound on the memory that requests under way may take together (queued.max.request.bytes).

It is asked for a request's whole size when its first bytes have come, and may be overdrawn by one: who was granted can
always finish, so nobody waits for ever. Who was not is not read from until others have been handled. Requests that fit
into one read are not counted; they are bounded by the number of connections.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

__all__ = ["Budget"]


class Budget:
    """Bytes that may be in use, and who waits for some."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: dict[Hashable, Callable[[], None]] = {}
        self.used_bytes = 0

    def take(self, who: Hashable, size_bytes: int, granted: Callable[[], None]) -> bool:
        """Whether there is room; if not, `granted` is called when there is, and must ask again."""
        if self.used_bytes >= self._limit_bytes:
            self._waiting[who] = granted
            return False
        self.used_bytes += size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        while self._waiting and self.used_bytes < self._limit_bytes:
            who = next(iter(self._waiting))
            self._waiting.pop(who)()

    def forget(self, who: Hashable) -> None:
        """Somebody does not want anything any more."""
        self._waiting.pop(who, None)
