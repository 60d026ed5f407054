"""What /proc says while a window runs: who else was busy, and how much memory Python workers hold. Linux only."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_WORKER = b"pyspark.daemon"
SAMPLE_S = 0.1


def descendants(root: int) -> set[int]:
    """A process and all below it."""
    parents = {pid: fields[1] for pid, fields in _stats()}
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if int(parent) in found} - found
        if not more:
            return found
        found |= more


class Busy:
    """Processor time of the machine that is not ours, as a share of all there is, between entering and leaving."""

    share = 0.0

    def __enter__(self) -> Self:
        self._before = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        total, idle, own = (now - then for now, then in zip(self._read(), self._before, strict=True))
        self.share = max(0.0, (total - idle - own) / max(total, 1))

    def _read(self) -> tuple[float, float, float]:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        times = [int(word) for word in words]
        own = descendants(os.getpid())
        spent = sum(
            int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
            for pid, fields in _stats()
            if pid in own
        )
        return sum(times), times[3] + times[4], spent


class WorkerMemory:
    """The largest resident memory of a Python worker between entering and leaving, in bytes."""

    peak_bytes = 0

    def __init__(self) -> None:
        self.samples: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.peak_bytes = max(self.samples, default=0)

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self.samples.append(max(_worker_sizes(), default=0))


def _worker_sizes() -> Iterator[int]:
    own = descendants(os.getpid())
    for pid, fields in _stats():
        if pid in own and _WORKER in _command(pid):
            yield int(fields[21]) * _PAGE_BYTES


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def _stats() -> Iterator[tuple[int, list[str]]]:
    """Each process with the words of its stat file behind its name."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            yield int(entry.name), text.rpartition(")")[2].split()
