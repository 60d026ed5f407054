"""The order of calls: calls that change the description of one group run one after another.

So the last call decides, however long each takes: a description that is being pushed when its group is deleted is
deleted afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

__all__ = ["CallOrder"]

Begin = Callable[[], object]


class CallOrder:
    """Calls by key. Those of one key run one after another; calls of other keys do not wait."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[Begin]] = {}
        """Behind the call of a key that is under way."""

    def add(self, key: Hashable, begin: Begin) -> None:
        """Begin a call when all earlier ones of its key have ended: at once if there are none."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(begin)
            return
        self._waiting[key] = deque()
        begin()

    def remove(self, key: Hashable, begin: Begin) -> None:
        """A call that has not begun is given up."""
        self._waiting[key].remove(begin)

    def end(self, key: Hashable) -> None:
        """The call of this key that is under way has ended."""
        waiting = self._waiting[key]
        if waiting:
            waiting.popleft()()
        else:
            del self._waiting[key]
