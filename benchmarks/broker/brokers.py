"""The brokers that are measured, each as a process of its own with an empty directory, and what /proc says of them."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

from tests.interop import process
from tests.interop.apache import ApacheKafka

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Broker(Protocol):
    """A broker under test. `port` is known from `exec` on; it may not listen yet then."""

    name: str
    port: int
    pid: int

    def prepare(self) -> None:
        """What is done once before the first start and does not count: formatting."""

    def exec(self) -> None:
        """Start the program; does not wait until it serves."""

    def stop(self) -> None: ...


class Ottla:
    name = "ottla"

    def __init__(self, directory: Path, port: int) -> None:
        self.directory, self.port, self.pid = directory, port, 0
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)

    def exec(self) -> None:
        command = [sys.executable, "-m", "ottla", "serve", "--port", str(self.port)]
        with (self.directory / "serve.log").open("wb") as output:
            self._process = process.start([*command, "--data", str(self.directory / "data")], output)
        self.pid = self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            process.stop(self._process, timeout_s=STOP_TIMEOUT_S)


class Apache:
    """Apache Kafka 4.3.1 with its usual heap of 1 GB. It is formatted beforehand, since it does not do that itself."""

    name = "Apache Kafka"

    def __init__(self, directory: Path) -> None:
        self._kafka = ApacheKafka(directory, heap="1g", auto_create_topics_enable="true")
        self.port, self.pid = self._kafka.port, 0
        self._thread: threading.Thread | None = None

    def prepare(self) -> None:
        self._kafka.directory.mkdir(parents=True, exist_ok=True)
        self._kafka.format()

    def exec(self) -> None:
        self._thread = threading.Thread(target=self._kafka.start)
        self._thread.start()
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._kafka.running and time.monotonic() < deadline:
            time.sleep(0.0005)
        started = self._kafka._process  # whose processor time and memory are asked for
        assert started is not None
        self.pid, self.port = started.pid, self._kafka.port

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._kafka.running:
            self._kafka.stop()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
