"""What a process and its directory take at one moment, as Linux tells it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Sample", "sample"]

_BLOCK_BYTES: Final = 512


class Sample(NamedTuple):
    memory_bytes: int
    open_files: int
    threads: int
    disk_bytes: int


def sample(pid: int, directory: Path) -> Sample:
    """ProcessLookupError or FileNotFoundError if there is no such process."""
    process = Path(f"/proc/{pid}")
    resident_pages = int((process / "statm").read_text(encoding="ascii").split()[1])
    return Sample(
        resident_pages * os.sysconf("SC_PAGE_SIZE"),
        len(os.listdir(process / "fd")),
        len(os.listdir(process / "task")),
        disk_bytes(directory),
    )


def disk_bytes(directory: Path) -> int:
    """What all files below a directory take on the disk; files may come and go meanwhile."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_blocks * _BLOCK_BYTES
    return total
