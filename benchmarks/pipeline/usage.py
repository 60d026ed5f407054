"""What a process and those below it have used. Linux only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Usage", "Used", "children", "proportional_bytes"]

SIGCHLD_BIT: Final = 1 << (signal.SIGCHLD - 1)


class Used(NamedTuple):
    cpu_seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0

    def plus(self, other: Used) -> Used:
        return Used(*(one + another for one, another in zip(self, other, strict=True)))

    def minus(self, other: Used) -> Used:
        return Used(*(one - another for one, another in zip(self, other, strict=True)))


class Usage:
    """What this process and those below it have used so far.

    A process that ends leaves its figures to the parent that waits for it. Spark's daemon does not wait for its Python
    workers, so their last figures are kept here.
    """

    def __init__(self) -> None:
        self._unwaited: dict[str, Used] = {}

    def now(self) -> Used:
        total = Used()
        for pid in children(os.getpid()):
            try:
                parent, identity, used = _process(pid)
                is_waited_for = not _ignores_children(parent)
            except OSError:  # it has ended meanwhile
                continue
            if is_waited_for:
                total = total.plus(used)
            else:
                self._unwaited[identity] = used
        for used in self._unwaited.values():
            total = total.plus(used)
        return total


def children(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text(encoding="ascii").split():
            yield from children(int(child))


def proportional_bytes(pid: int) -> int:
    """The memory of a process. Of what it shares with others, as a forked worker does, only its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _process(pid: int) -> tuple[int, str, Used]:
    """Its parent, what tells it from a later process with this pid, and what it has used."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    io = dict(line.split(": ") for line in lines)
    # After the name of the program, which may have spaces.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = sum(map(int, fields[11:15]))  # user and system time, and those of ended children
    used = Used(ticks / os.sysconf("SC_CLK_TCK"), int(io["rchar"]), int(io["wchar"]))
    return int(fields[1]), f"{pid} since {fields[19]}", used


def _ignores_children(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return bool(int(mask, 16) & SIGCHLD_BIT)
