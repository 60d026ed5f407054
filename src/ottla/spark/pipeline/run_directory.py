"""The temporary directory of a run, and the lock that keeps two pipelines from writing to one output directory."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final
from uuid import uuid4

from ottla.spark.errors import OttlaSparkError

__all__ = ["RunDirectory"]

LOCK: Final = ".lock"
WORK: Final = ".work-"


class RunDirectory:
    """Locks an output directory and creates a temporary directory below it. It is removed at the end; those of runs
    that were killed are removed at the beginning of the next run."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._lock: int | None = None
        self._path = out / f"{WORK}{uuid4().hex[:8]}"

    def __enter__(self) -> Path:
        self._out.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self._out / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise OttlaSparkError(
                f"{self._out} is in use by another pipeline: wait for it, or choose another --out"
            ) from None
        for left in self._out.glob(f"{WORK}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._path.mkdir()
        return self._path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
