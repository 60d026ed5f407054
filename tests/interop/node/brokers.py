"""The broker under test: `ottla serve` as a program, or Apache Kafka, with the same face."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from tests.interop import process
from tests.interop.process import ProgramFailed

OTTLA, APACHE = "ottla", "apache"
SWITCH = "OTTLA_INTEROP_BROKERS"
"""`apache`, `ottla` or both with a comma between them; both unless set."""
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
_READY = re.compile(rb"ottla ready PLAINTEXT://([^ ]+)")


class Broker(Protocol):
    """What suites need to know of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def data_dir(self) -> Path: ...


def wanted() -> list[str]:
    named = [name.strip() for name in os.environ.get(SWITCH, f"{OTTLA},{APACHE}").split(",")]
    assert set(named) <= {OTTLA, APACHE}, f"{SWITCH} knows {OTTLA} and {APACHE}"
    return named


class OttlaServe:
    """`ottla serve` on a directory. `start` waits until it serves."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.data_dir = directory / "data"
        self.log_path = directory / "serve.log"
        self.bootstrap_servers = ""
        self._settings = [word for key, value in settings.items() for word in ("--set", f"{_property(key)}={value}")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "ottla", "serve", "--port", "0", "--data", str(self.data_dir)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OTTLA_")}
        with self.log_path.open("wb") as output:
            self._process = subprocess.Popen(
                process.tied([*command, *self._settings]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (ready := _READY.search(self.log_path.read_bytes())):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ProgramFailed("ottla serve", "did not start", process.tail(self.log_path))
            time.sleep(0.02)
        self.bootstrap_servers = ready[1].decode()

    def stop(self) -> None:
        assert self._process is not None
        if not process.stop(self._process, timeout_s=STOP_TIMEOUT_S):
            raise ProgramFailed("ottla serve", f"did not stop within {STOP_TIMEOUT_S} s", process.tail(self.log_path))

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            process.kill(self._process)

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


def _property(key: str) -> str:
    return key if "." in key else key.replace("_", ".")
