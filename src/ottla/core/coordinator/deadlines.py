"""Deadlines as data: which keys are due, and when to look again.

A session is renewed far more often than it ends, so moving a deadline to later costs one dictionary entry: the heap
keeps the older time, and when that comes up the key is filed again under its new one.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from itertools import count

__all__ = ["Deadlines"]


class Deadlines:
    def __init__(self) -> None:
        self._at_ms: dict[Hashable, int] = {}
        self._filed_at_ms: dict[Hashable, int] = {}
        """The earliest time under which a key stands in the heap."""
        self._heap: list[tuple[int, int, Hashable]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._at_ms)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._at_ms

    def get(self, key: Hashable) -> int | None:
        return self._at_ms.get(key)

    def set(self, key: Hashable, at_ms: int) -> bool:
        """File a key, or move it; whether `next_at_ms` may be earlier now."""
        self._at_ms[key] = at_ms
        filed_at_ms = self._filed_at_ms.get(key)
        if filed_at_ms is None or at_ms < filed_at_ms:
            self._file(key, at_ms)
            return True
        return False

    def cancel(self, key: Hashable) -> None:
        self._at_ms.pop(key, None)
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at_ms):
            self._rebuild()

    def next_at_ms(self) -> int | None:
        """No key is due before this; none may be due then, if it was moved."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> Hashable | None:
        """One key whose time has come, which is forgotten; None if there is none. Keys come in the order of time."""
        self._settle()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._filed_at_ms[key], self._at_ms[key]
        return key

    def _file(self, key: Hashable, at_ms: int) -> None:
        self._filed_at_ms[key] = at_ms
        heapq.heappush(self._heap, (at_ms, next(self._serial), key))

    def _settle(self) -> None:
        """Bring the true earliest deadline to the top."""
        heap = self._heap
        while heap:
            filed_at_ms, _, key = heap[0]
            at_ms = self._at_ms.get(key)
            if at_ms == filed_at_ms == self._filed_at_ms.get(key):
                return
            heapq.heappop(heap)
            if self._filed_at_ms.get(key) != filed_at_ms:
                continue  # it was moved to earlier, and stands in the heap a second time
            del self._filed_at_ms[key]
            if at_ms is not None:
                self._file(key, at_ms)

    def _rebuild(self) -> None:
        self._heap = []
        self._filed_at_ms = {}
        for key, at_ms in self._at_ms.items():
            self._file(key, at_ms)
