"""The timeline of a world: a heap of actions, and a machine that runs after each of them.

Each step takes all actions of the next time, or the machine's next deadline, whichever comes first; then `serve` runs
the machine, and `check` checks the invariants. All randomness comes from one generator.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Final

from ottla.testing.clock import VirtualClock
from ottla.testing.disk import Crash
from ottla.testing.trace import Trace, Violation

__all__ = ["Timeline"]

_STEPS_MAX: Final = 200_000
"""No run is that long, except an endless loop in which no time passes."""


class Timeline:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.trace = Trace()
        self.clock = VirtualClock()
        self.is_up = True
        """Whether the machine runs."""
        self.is_calm = False
        """Whether the faults have ended."""
        self.settled_ms = 0
        """How long after the end of the faults everything had converged."""
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = count()
        self._violation: Violation | None = None

    # --- what a world says --------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """The next deadline of the machine."""
        raise NotImplementedError

    def serve(self) -> None:
        """Let the machine handle its deadlines and end its turn."""
        raise NotImplementedError

    def restart(self) -> None:
        """Start the machine again with the disk that remains."""
        raise NotImplementedError

    def disk_operations(self) -> int:
        raise NotImplementedError

    # --- time ---------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now_ms() + delay_ms, next(self._serial), action))

    def run_until(self, end_ms: int, done: Callable[[], bool] = lambda: False) -> bool:
        """Run until a time, or until `done`; returns whether it was `done`."""
        for _ in range(_STEPS_MAX):
            if done():
                return True
            at_ms = self._next_at_ms()
            if at_ms is None or at_ms > end_ms:
                self.clock.advance_to(end_ms)
                return done()
            self.clock.advance_to(at_ms)
            self._step(at_ms)
        raise Violation("converges", f"{_STEPS_MAX} steps have led to no end")

    def _next_at_ms(self) -> int | None:
        known = [self._heap[0][0]] if self._heap else []
        deadline_ms = self.next_deadline_ms() if self.is_up else None
        if deadline_ms is not None:
            known.append(max(deadline_ms, self.now_ms()))
        return min(known) if known else None

    def _step(self, at_ms: int) -> None:
        """Everything at this time is one turn of the machine, like the requests of one read."""
        try:
            while self._heap and self._heap[0][0] <= at_ms:
                heapq.heappop(self._heap)[2]()
            if self.is_up:
                self.serve()
        except Crash:
            self._crashed()
        self.check()

    # --- the machine's ups and downs ----------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process is killed."""
        if self.is_up:
            self._crashed()

    def _crashed(self) -> None:
        self.is_up = False
        self.note_fault("kill", f"after {self.disk_operations()} operations of the disk")
        self.after(self.random.randint(20, 6_000), self._start_again)

    def _start_again(self) -> None:
        self.note("the coordinator starts")
        self.is_up = True
        self.restart()

    # --- telling and judging ------------------------------------------------------------------------------------------

    def note(self, line: str) -> None:
        self.trace.add(self.now_ms(), line)

    def note_fault(self, kind: str, detail: str = "") -> None:
        self.trace.fault(self.now_ms(), kind, detail)

    def hold(self, name: str, condition: bool, detail: str) -> None:
        """Note a violation of the invariant unless the condition is true."""
        if not condition:
            self.found(Violation(name, detail))

    def found(self, violation: Violation) -> None:
        """Remember it for the end of the step: the code under test might catch an exception that is raised now."""
        if self._violation is None:
            self._violation = violation
            self.note(f"VIOLATION {violation}")

    def check(self) -> None:
        """Raise the first violation, if there is one."""
        if self._violation is not None:
            raise self._violation
