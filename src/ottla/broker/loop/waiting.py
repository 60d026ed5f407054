"""The one waiting place: requests that cannot be answered yet, what may wake them, and until when they wait.

Fetches that wait for bytes, produces that wait for replicas, joins that wait for members: each is a `Waiter` with a
deadline, filed under the keys of the things it waits for. When one of them moves, `wake(key)` asks each waiter under
the key whether it can be answered now. Deadlines are data in a heap; the loop has one timer, for the nearest of them. A
waiter leaves all its places at once when it is done.

Nothing here knows of the event loop or of clocks: `now_ms` comes in, and `next_deadline` says when to come again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Final

__all__ = ["WAITERS_MAX", "Waiter", "Waiting"]

WAITERS_MAX: Final = 100_000
"""More parked requests than this are not taken: each has a connection, so this bounds a mistake, not a load."""


class Waiter:
    """A parked request. `attempt(expired)` answers it and says so, or says that it must wait on."""

    __slots__ = ("attempt", "deadline_at_ms", "is_done", "keys")

    def __init__(self, attempt: Callable[[bool], bool], keys: Iterable[Hashable], deadline_at_ms: int) -> None:
        self.attempt = attempt
        self.keys = tuple(keys)
        self.deadline_at_ms = deadline_at_ms
        self.is_done = False


class Waiting:
    """All parked requests of a node."""

    def __init__(self, *, waiters_max: int = WAITERS_MAX) -> None:
        self._by_key: dict[Hashable, dict[Waiter, None]] = {}
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._serial = count()
        self._waiters_max = waiters_max
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(self, waiter: Waiter) -> bool:
        """File a waiter; False if there are too many, then the caller answers at once as if the time were over."""
        if self._count >= self._waiters_max:
            return False
        self._count += 1
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        heapq.heappush(self._deadlines, (waiter.deadline_at_ms, next(self._serial), waiter))
        return True

    def is_awaited(self, key: Hashable) -> bool:
        """Whether anybody waits for this; who comes later looks for himself before he waits."""
        return key in self._by_key

    def wake(self, key: Hashable) -> None:
        """Something moved: ask everyone who waits for it."""
        waiters = self._by_key.get(key)
        if not waiters:
            return
        for waiter in list(waiters):
            if not waiter.is_done and waiter.attempt(False):
                self.remove(waiter)

    def expire(self, now_ms: int) -> None:
        """Answer all whose time is over."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            waiter = heapq.heappop(self._deadlines)[2]
            if not waiter.is_done:
                self.remove(waiter)
                waiter.attempt(True)

    def next_deadline(self) -> int | None:
        """When `expire` has something to do; None while nobody waits."""
        while self._deadlines and self._deadlines[0][2].is_done:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def remove(self, waiter: Waiter) -> None:
        """Forget a waiter: it was answered, or its connection is gone."""
        if waiter.is_done:
            return
        waiter.is_done = True
        self._count -= 1
        for key in waiter.keys:
            waiters = self._by_key.get(key)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del self._by_key[key]
        # Its entry in the heap goes when it comes up; without this, answers long before their deadline would pile up.
        if len(self._deadlines) > 64 and len(self._deadlines) > 4 * self._count:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].is_done]
            heapq.heapify(self._deadlines)
