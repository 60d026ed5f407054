"""The console as a child of a node or of a cluster: a process of its own, so that no page slows the node down."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from importlib.util import find_spec
from typing import Final

from ottla.cli.failure import Failure

__all__ = ["ConsoleProcess", "check_console", "missing_package"]

STOP_S: Final = 10.0
INSTALL: Final = "pip install 'ottla[console]'"


def missing_package() -> str | None:
    """A package that the console needs and this machine does not have."""
    return next((name for name in ("starlette", "uvicorn") if find_spec(name) is None), None)


def check_console() -> None:
    """Failure if a package is missing: better now than when the node runs."""
    if name := missing_package():
        raise Failure(f"the console needs {name}, which is not installed", INSTALL)


class ConsoleProcess:
    """It says its address on the standard output of this process, and ends when this process does."""

    def __init__(self, bootstrap_servers: str, port: int) -> None:
        command = [sys.executable, "-m", "ottla", "console", "--bootstrap", bootstrap_servers, "--port", str(port)]
        # Ctrl-C at the terminal is for this process, which then closes the child's input.
        self._process = subprocess.Popen([*command, "--with-parent"], stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(OSError):
                self._process.wait()
