"""When acquisition locks end.

A lock is filed as a range of offsets. The range may be cut, renewed or acknowledged later without a word here: when its
time comes the window is asked what of it is still held that long. What has become useless is thrown out when it
outweighs the rest.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

__all__ = ["Locks"]

_SMALL = 64

Lock = tuple[int, int, int]
"""When it ends, first and last offset."""


class Locks:
    def __init__(self) -> None:
        self._heap: list[Lock] = []
        self._crowded_at = _SMALL

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def due_at_ms(self) -> int | None:
        """Nothing ends before this."""
        return self._heap[0][0] if self._heap else None

    @property
    def is_crowded(self) -> bool:
        """Whether `replace` with the locks that are really held is worth its while."""
        return len(self._heap) > self._crowded_at

    def add(self, at_ms: int, first: int, last: int) -> None:
        heapq.heappush(self._heap, (at_ms, first, last))

    def take_due(self, now_ms: int) -> Iterator[tuple[int, int]]:
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            _, first, last = heapq.heappop(heap)
            yield first, last

    def replace(self, locks: Iterable[Lock]) -> None:
        self._heap = list(locks)
        heapq.heapify(self._heap)
        self._crowded_at = max(_SMALL, 2 * len(self._heap))
