"""A log directory through its life: identity, lock, marker, checkpoints, strays, removal, failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.log.lock import DirectoryLock, LockedError


def test_the_lock_keeps_others_out(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    with pytest.raises(LockedError, match="by this process"):
        DirectoryLock(str(tmp_path))
    attempt = [sys.executable, "-c", f"from ottla.log.lock import DirectoryLock; DirectoryLock({str(tmp_path)!r})"]
    other = subprocess.run(attempt, capture_output=True, text=True, check=False)
    assert "in use by another process" in other.stderr
    lock.release(remove=True)
    assert not (tmp_path / ".lock").exists()
    lock.release(remove=True)  # once is enough
    assert subprocess.run(attempt, capture_output=True, check=False).returncode == 0
