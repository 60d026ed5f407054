"""The brokers that are measured, each as a process of its own with an empty directory, and what /proc says of them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from benchmarks.broker.raw import first_produce
from tests.interop import process
from tests.interop.apache import ApacheKafka
from tests.interop.jars import APACHE_KAFKA, classpath

STOP_TIMEOUT_S = 30.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TICK_S = 1 / _TICKS_PER_S
"""The least processor time that the system counts."""


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
    """`ottla serve`. A start before the first one that counts writes the bytecode, as an installation would have.

    Without a folder for the bytecode there is no such start, and Python puts it where it usually does.
    """

    name = "ottla"

    def __init__(
        self, directory: Path, port: int, settings: Mapping[str, str] | None = None, bytecode: Path | None = None
    ) -> None:
        self.directory, self.port, self.pid = directory, port, 0
        self._bytecode = bytecode
        self._settings = [f"--set={name}={value}" for name, value in (settings or {}).items()]
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)
        if self._bytecode is not None:
            self.exec("--ephemeral")
            first_produce(self.port, "bytecode")
            self.stop()

    def exec(self, *options: str) -> None:
        command = [sys.executable, "-m", "ottla", "serve", "--port", str(self.port)]
        hidden = ("PYTHONDONTWRITEBYTECODE", "OTTLA_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        if self._bytecode is not None:
            environment["PYTHONPYCACHEPREFIX"] = str(self._bytecode)
        with (self.directory / "serve.log").open("wb") as output:
            self._process = subprocess.Popen(
                process.tied([*command, *self._settings, *(options or ("--data", str(self.directory / "data")))]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        self.pid = self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            process.stop(self._process, timeout_s=STOP_TIMEOUT_S)


class Apache:
    """Apache Kafka 4.3.1 with its usual heap of 1 GB. It is formatted beforehand, since it does not do that itself."""

    name = "Apache Kafka"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self._kafka = ApacheKafka(directory, **(settings or {}))
        self.directory, self.port, self.pid = directory, self._kafka.port, 0
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)
        self._kafka.format()

    def exec(self) -> None:
        properties = str(self.directory / "server.properties")
        options = ("-Xms1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
        command = process.java(classpath(APACHE_KAFKA), "kafka.Kafka", properties, heap="1g", options=options)
        with (self.directory / "server.log").open("wb") as output:
            self._process = process.start(command, output)
        self.pid = self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            process.stop(self._process, timeout_s=STOP_TIMEOUT_S)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def under_load(broker: Broker, load: Callable[[], float]) -> tuple[float, float]:
    """The load's seconds, and the processor time that the broker spent on it."""
    before = cpu_seconds(broker.pid)
    seconds = load()
    return seconds, max(cpu_seconds(broker.pid) - before, 1e-9)


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
