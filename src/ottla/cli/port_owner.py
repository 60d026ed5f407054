"""Which process has taken a port, as far as this machine tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"


def holder(port: int) -> str:
    """`pid 4121, java`, or nothing where nobody can say: on other systems than Linux, and of other users' programs."""
    sockets = set(_listening(port))
    for process in _PROC.iterdir() if sockets and _PROC.is_dir() else ():
        if process.name.isdecimal() and sockets & set(_sockets(process)):
            return f"pid {process.name}, {_name(process)}"
    return ""


def _listening(port: int) -> Iterator[str]:
    """The sockets that listen on a port, as links of /proc name them."""
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
    except OSError:  # it is another user's, or has just ended
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
