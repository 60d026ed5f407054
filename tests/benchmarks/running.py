"""Smoke runs of benchmarks: the least of everything, by the command that a person types."""

import subprocess
import sys

from benchmarks.runner import RESULTS, ROOT

TIMEOUT_S = 600


def smoke_run(folder: str, *options: str) -> str:
    """What `python -m benchmarks FOLDER --smoke` prints; it has to come to a good end and to write no results."""
    before = results()
    command = [sys.executable, "-m", "benchmarks", folder, "--smoke", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command[1:])}\n{done.stdout}\n{done.stderr}"
    assert results() == before
    return done.stdout


def results() -> dict[str, int]:
    """Each file of results with the time of its last change."""
    return {path.name: path.stat().st_mtime_ns for path in RESULTS.iterdir()}
