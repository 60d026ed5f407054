"""`ottla serve` on a loop that notes its long turns: what clients had to wait for, and how much of it was our own work.

    python -m benchmarks.scale.measured_node TURNS NAME=VALUE...

TURNS gets a line for each turn of a millisecond and more: when it ended by the monotonic clock, the processor time of
the loop's thread, and the time that went by, which other programs on the machine prolong. All in seconds.
"""

import asyncio
import selectors
import sys
import time
from pathlib import Path
from typing import TextIO

from ottla.cli import node_process

__all__ = ["command"]

NOTED_S = 0.001


class NotingSelector(selectors.DefaultSelector):
    """A turn begins when the selector returns, and ends when it is asked again."""

    def __init__(self, notes: TextIO) -> None:
        super().__init__()
        self._notes = notes
        self._began = (time.thread_time(), time.monotonic())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        cpu_s, now_s = time.thread_time(), time.monotonic()
        turn = (cpu_s - self._began[0], now_s - self._began[1])
        if max(turn) >= NOTED_S:
            self._notes.write(f"{now_s:.6f} {turn[0]:.6f} {turn[1]:.6f}\n")
        found = super().select(timeout)
        self._began = (time.thread_time(), time.monotonic())
        return found


def command(turns: Path, settings: dict[str, str]) -> list[str]:
    """The command line that starts such a node."""
    return [sys.executable, "-m", __name__, str(turns), *(f"{name}={value}" for name, value in settings.items())]


def main(turns: str, *settings: str) -> int:
    places = [dict(setting.split("=", 1) for setting in settings)]
    with Path(turns).open("w", encoding="ascii", buffering=1) as notes:
        node_process.new_loop = lambda: asyncio.SelectorEventLoop(NotingSelector(notes))
        return node_process.run(places, port=0, is_ephemeral=False, verbosity=0, out=sys.stdout)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
