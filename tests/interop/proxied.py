"""`ottla proxy` as its users start it: a process between clients and a cluster."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop import process
from tests.interop.process import ProgramFailed

START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 20
POLL_S = 0.02
READY = re.compile(r"^ottla proxy ready (\S+) -> ", re.MULTILINE)


class Proxy:
    """Runs from `with` to its end, or to `stop`. What it printed is in `out_path`, its notes are in `notes_path`."""

    def __init__(self, upstream: str, directory: Path, *options: str) -> None:
        self.out_path = directory / "proxy.out"
        self.notes_path = directory / "proxy.notes"
        self.bootstrap_servers = ""
        self._command = [sys.executable, "-m", "ottla", "proxy", "--listen", "0", "--to", upstream, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.out_path.open("wb") as out, self.notes_path.open("wb") as notes:
            command = process.tied(self._command)
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=notes)
        self.bootstrap_servers = self._await_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            process.kill(self._process)

    @property
    def notes(self) -> str:
        return self.notes_path.read_text()

    def stop(self) -> str:
        """End it as Control-C does and give its notes, the sums last. ProgramFailed if it does not end well."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ProgramFailed("ottla proxy", f"did not end within {STOP_TIMEOUT_S} s", self.notes) from None
        if code:
            raise ProgramFailed("ottla proxy", f"ended with exit code {code}", self.notes)
        return self.notes

    def _await_ready(self) -> str:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if found := READY.search(self.notes):
                return found[1]
            time.sleep(POLL_S)
        process.kill(self._process)
        raise ProgramFailed("ottla proxy", "did not get ready", self.notes)
