"""What the processes of a benchmark have used, when some of them have ended."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks.pipeline.usage import Usage

READ_BYTES = 20_000_000
PROGRAM = f"""
import os, signal, sys

signal.signal(signal.SIGCHLD, signal.{{disposition}})
if os.fork() == 0:
    with open("/dev/zero", "rb") as zeros:
        zeros.read({READ_BYTES})
    print("read", flush=True)
    sys.stdin.readline()
    os._exit(0)
try:
    os.wait()
except ChildProcessError:  # it has ended, and nobody is told how
    pass
print("ended", flush=True)
sys.stdin.readline()
"""


@contextmanager
def parent(disposition: str) -> Iterator[Callable[[], Any]]:
    """A process whose child reads from a device; each call lets it go on, and returns what is printed next."""
    command = [sys.executable, "-c", PROGRAM.format(disposition=disposition)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, stdin = iter(process.stdout), process.stdin
        is_first = True

        def go_on() -> str:
            nonlocal is_first
            if not is_first:
                stdin.write("\n")
                stdin.flush()
            is_first = False
            return next(lines).strip()

        yield go_on
        process.send_signal(signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("disposition", ["SIG_DFL", "SIG_IGN"])
def test_a_process_that_has_ended_still_counts_once(disposition: str):
    """Spark's daemon ignores SIGCHLD, so that nobody inherits the figures of its workers."""
    usage = Usage()
    before = usage.now()
    with parent(disposition) as go_on:
        assert go_on() == "read"
        running = usage.now()
        assert go_on() == "ended"
        ended = usage.now()
    assert running.read_bytes - before.read_bytes >= READ_BYTES
    assert 0 <= ended.read_bytes - running.read_bytes < READ_BYTES
    assert ended.cpu_seconds >= running.cpu_seconds
