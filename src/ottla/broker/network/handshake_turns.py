"""Keeps TLS handshakes from holding up the loop: each costs a millisecond or more, and many can begin at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

__all__ = ["HandshakeTurns"]

BUDGET_NS: Final = 5_000_000
"""For all handshakes in one turn of the loop."""


class Loop(Protocol):
    def call_soon(self, callback: Callable[[], Any]) -> Any: ...  # noqa: ANN401


class HandshakeTurns:
    """Runs steps of handshakes, for a part of each turn. What is not run is still readable in the next turn."""

    def __init__(self, loop: Loop, precise_ns: Callable[[], int]) -> None:
        self._loop = loop
        self._precise_ns = precise_ns
        self._spent_ns = 0

    def run(self, step: Callable[[], None]) -> None:
        if self._spent_ns >= BUDGET_NS:
            return
        if not self._spent_ns:
            self._loop.call_soon(self._begin_turn)
        started_ns = self._precise_ns()
        step()
        self._spent_ns += max(self._precise_ns() - started_ns, 1)

    def _begin_turn(self) -> None:
        self._spent_ns = 0
