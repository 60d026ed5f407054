"""Finds the process that uses a port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"


def holder(port: int) -> str:
    """`pid 4121, java`; empty if it is unknown: on other systems than Linux, and for processes of other users."""
    sockets = set(_listening(port))
    for process in _PROC.iterdir() if sockets and _PROC.is_dir() else ():
        if process.name.isdecimal() and sockets & set(_sockets(process)):
            return f"pid {process.name}, {_name(process)}"
    return ""


def _listening(port: int) -> Iterator[str]:
    """The sockets that listen on a port, with their names in /proc."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield f"socket:[{fields[9]}]"


def _sockets(process: Path) -> Iterator[str]:
    try:
        files = list((process / "fd").iterdir())
    except OSError:  # it belongs to another user, or has just ended
        return
    for file in files:
        try:
            yield os.readlink(file)
        except OSError:
            continue


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "a program that has just ended"
