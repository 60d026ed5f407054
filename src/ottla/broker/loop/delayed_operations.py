"""Delayed operations: requests that cannot be answered yet, what they wait for, and their deadlines.

A fetch that waits for bytes, a produce that waits for replicas, a retry that waits for its time: each is a
`DelayedOperation` with a deadline, filed under the keys of what it waits for. `wake(key)` lets each operation under a
key try whether it can complete now. Deadlines are in a heap, so the loop needs one timer, for the nearest of them. An
operation that is done leaves all keys at once.

This module knows no event loop and no clock: the caller passes `now_ms` in, and `next_deadline` says when to call
`expire` next. `purgatory` joins it to the loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Final

__all__ = ["DELAYED_MAX", "DelayedOperation", "DelayedOperations"]

DELAYED_MAX: Final = 100_000
"""No more operations than this are parked. Each has a connection, so the bound is for mistakes, not for load."""


class DelayedOperation:
    """A parked request. `attempt(expired)` tries to answer it; True if that worked, False if it must wait on."""

    __slots__ = ("attempt", "deadline_at_ms", "is_done", "keys")

    def __init__(self, attempt: Callable[[bool], bool], keys: Iterable[Hashable], deadline_at_ms: int) -> None:
        self.attempt = attempt
        self.keys = tuple(keys)
        self.deadline_at_ms = deadline_at_ms
        self.is_done = False


class DelayedOperations:
    """All delayed operations of a node."""

    def __init__(self, *, operations_max: int = DELAYED_MAX) -> None:
        self._by_key: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._deadlines: list[tuple[int, int, DelayedOperation]] = []
        self._serial = count()
        self._operations_max = operations_max
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(self, operation: DelayedOperation) -> bool:
        """Park an operation; False if there are too many: then the caller answers as if the deadline had passed."""
        if self._count >= self._operations_max:
            return False
        self._count += 1
        for key in operation.keys:
            self._by_key.setdefault(key, {})[operation] = None
        heapq.heappush(self._deadlines, (operation.deadline_at_ms, next(self._serial), operation))
        return True

    def is_awaited(self, key: Hashable) -> bool:
        """Whether an operation waits for this key. One that is parked later tries once before it is parked."""
        return key in self._by_key

    def wake(self, key: Hashable) -> None:
        """Let each operation under a key try to complete."""
        operations = self._by_key.get(key)
        if not operations:
            return
        for operation in list(operations):
            if not operation.is_done and operation.attempt(False):
                self.remove(operation)

    def expire(self, now_ms: int) -> None:
        """Answer all operations whose deadline has passed."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            operation = heapq.heappop(self._deadlines)[2]
            if not operation.is_done:
                self.remove(operation)
                operation.attempt(True)

    def next_deadline(self) -> int | None:
        """When `expire` is to be called next; None if nothing is parked."""
        while self._deadlines and self._deadlines[0][2].is_done:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def remove(self, operation: DelayedOperation) -> None:
        """Remove an operation that was answered, or whose connection is gone."""
        if operation.is_done:
            return
        operation.is_done = True
        self._count -= 1
        for key in operation.keys:
            operations = self._by_key.get(key)
            if operations is not None:
                operations.pop(operation, None)
                if not operations:
                    del self._by_key[key]
        # Its entry in the heap goes when it comes up; without this, answers long before their deadline would pile up.
        if len(self._deadlines) > 64 and len(self._deadlines) > 4 * self._count:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].is_done]
            heapq.heapify(self._deadlines)
