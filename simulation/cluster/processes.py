"""Processes of a simulated cluster: whose code runs, and whether it still may.

Everything runs in one event loop. A context variable says for which process; handles of the loop inherit it from the
code that made them. The loop runs nothing more of a process that was killed, and holds what belongs to a paused one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from enum import Enum
from typing import Any

__all__ = ["CURRENT", "Process", "ProcessState"]


class ProcessState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """One life of a program on one machine."""

    def __init__(self, name: str, host: str, life: int = 1) -> None:
        self.name = name
        self.host = host
        self.life = life
        self.state = ProcessState.RUNNING
        self.held: list[asyncio.Handle] = []
        """What became due while it was paused, in order."""
        self.tasks: list[asyncio.Task[Any]] = []
        """Kept, so that what a dead process has left is not torn down while the world goes on."""

    @property
    def is_running(self) -> bool:
        return self.state is ProcessState.RUNNING

    def run(self, loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task of this process."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        return loop.create_task(main, context=context)

    def end(self) -> None:
        """Nothing of it runs any more."""
        self.state = ProcessState.DEAD
        self.held.clear()


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""The process whose code runs; None for the world itself."""
