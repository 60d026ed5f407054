"""The order of calls: those that change what the plugin holds of one group follow one another.

What is held of a group is then what its last call has left, whichever of the calls took longest: a description whose
push is under way when its group is deleted goes with the delete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

__all__ = ["CallOrder"]

Begin = Callable[[], object]


class CallOrder:
    """Calls by key. Those of the same key follow one another; others do not wait."""

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
