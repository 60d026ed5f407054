"""The output on the terminal: a line for each step, and progress during a step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

from rich.console import Console
from rich.text import Text

__all__ = ["Narrator"]

STEPS: Final = 6
SIGN_OF_LIFE_S: Final = 10.0


class Narrator:
    """Lines begin with the time since the start. A terminal shows a clock; elsewhere a line comes once in a while."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began_s = monotonic()

    @property
    def time(self) -> str:
        minutes, seconds = divmod(int(monotonic() - self._began_s), 60)
        return f"{minutes}:{seconds:02d}"

    def step(self, number: int, title: str, text: str) -> None:
        """A step is done."""
        mark = "ok" if self.console.options.ascii_only else "✓"
        self._line((f"{number}/{STEPS} ", "bold"), (f"{title} ", "bold"), (mark, "green"), f" {text}")

    def begin(self, number: int, text: str) -> None:
        """A step begins."""
        self._line((f"{number}/{STEPS} ", "bold"), text)

    def say(self, text: str) -> None:
        self._line("    ", text)

    def warn(self, text: str) -> None:
        self._line("    ", (text, "yellow"))

    def _line(self, *parts: str | tuple[str, str]) -> None:
        self.console.print(Text.assemble((f"{self.time:>5}  ", "dim"), *parts), soft_wrap=True)

    @asynccontextmanager
    async def doing(self, what: str | Callable[[], str], seconds: float | None = None) -> AsyncIterator[None]:
        """Show progress, with the remaining time if it is known."""
        task = asyncio.create_task(self._tick(what if callable(what) else lambda: what, seconds))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _tick(self, what: Callable[[], str], seconds: float | None) -> None:
        began = monotonic()

        def text() -> str:
            left = "" if seconds is None else f", {max(0.0, seconds - (monotonic() - began)):.0f} s left"
            return f"{what()}{left}"

        if not self.console.is_terminal:
            while True:
                await asyncio.sleep(SIGN_OF_LIFE_S)
                self.say(f"… {text()}")
        with self.console.status(text()) as status:
            while True:
                await asyncio.sleep(0.25)
                status.update(f"{self.time}  {text()}")
