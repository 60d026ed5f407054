"""tcpdump around something: the packets that the kernel saw on loopback, as others capture them."""

import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop import process
from tests.interop.process import ProgramFailed

START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 20
POLL_S = 0.02
BUFFER_KIB = 65_536


class NotPermitted(RuntimeError):
    """There is no tcpdump, or this user may not capture."""


class Tcpdump:
    """Captures all traffic of one port into `path`, from `with` to its end."""

    def __init__(self, path: Path, port: int) -> None:
        self.path = path
        self._notes = path.with_suffix(".notes")
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        program = shutil.which("tcpdump")
        if program is None:
            raise NotPermitted("there is no tcpdump")
        what = ("tcp", "port", str(self._port))
        command = [program, "-i", "lo", "-n", "-s", "0", "-U", "-B", str(BUFFER_KIB), "-w", str(self.path), *what]
        with self._notes.open("wb") as notes:
            self._process = process.start(command, notes)
        self._await_start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        is_clean = process.stop(self._process, timeout_s=STOP_TIMEOUT_S)
        if error is None and (not is_clean or "\n0 packets dropped by kernel" not in self._notes.read_text()):
            raise ProgramFailed("tcpdump", "lost packets or did not end", self._notes.read_text())

    def _await_start(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if "listening on" in self._notes.read_text():
                return
            time.sleep(POLL_S)
        process.kill(self._process)
        raise NotPermitted(self._notes.read_text())
