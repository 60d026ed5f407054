"""Controllers without brokers, each as a process of its own: ottla's and Apache Kafka's; and a whole node of ottla."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker.brokers import STOP_TIMEOUT_S, Apache, Broker, Ottla
from benchmarks.scale import measured_node
from tests.interop import process
from tests.interop.apache import free_ports
from tests.interop.controller.twin import ControllerOnly

__all__ = ["ApacheController", "OttlaController", "OttlaNode", "Turn", "new_controller"]

START_TIMEOUT_S = 60
POLL_S = 0.02


class Turn(NamedTuple):
    """A long turn of an event loop."""

    ended_at: float
    cpu_s: float
    wall_s: float


class OttlaNode:
    """A node of ottla that notes long turns of its loop."""

    name = Ottla.name

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.directory, self.port, self.pid = directory, free_ports(1)[0], 0
        self.data_dir = directory / "data"
        self._settings = settings
        self._turns = directory / "turns.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)

    def exec(self) -> None:
        """Start, and wait until it serves."""
        settings = {**self._roles(), "log.dirs": str(self.data_dir), **self._settings}
        log_path = self.directory / "serve.log"
        with log_path.open("wb") as output:
            self._process = process.start(measured_node.command(self._turns, settings), output)
        self.pid = self._process.pid
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"ottla ready" not in log_path.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise process.ProgramFailed("ottla", "does not start", process.tail(log_path))
            time.sleep(POLL_S)

    def _roles(self) -> dict[str, str]:
        return {"listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:0"}

    def turns(self, began: float, ended: float) -> list[Turn]:
        """The long turns between two moments of the monotonic clock."""
        time.sleep(0.1)  # the last one is noted when it is over
        lines = self._turns.read_text(encoding="ascii").splitlines()
        found = [Turn(*map(float, line.split())) for line in lines]
        return [turn for turn in found if turn.ended_at >= began and turn.ended_at - turn.wall_s <= ended]

    def stop(self) -> None:
        if self._process is not None:
            process.stop(self._process, timeout_s=STOP_TIMEOUT_S)


class OttlaController(OttlaNode):
    """One that is a controller only."""

    def _roles(self) -> dict[str, str]:
        return {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{self.port}"}


class ApacheController:
    """A node of Apache Kafka 4.3.1 that is a controller only, with its usual heap of 1 GB."""

    name = Apache.name

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self._kafka = ControllerOnly(directory, heap="1g", **settings)
        self.directory, self.data_dir, self.port, self.pid = directory, self._kafka.data_dir, 0, 0

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)
        self._kafka.format()

    def exec(self) -> None:
        """Start, and wait until it serves."""
        self._kafka.start()
        self.port = int(self._kafka.controller_servers.rpartition(":")[2])
        self.pid = self._kafka.pid or 0

    def stop(self) -> None:
        if self._kafka.running:
            self._kafka.stop()


def new_controller(name: str, directory: Path, settings: Mapping[str, str] | None, _: Path | None) -> Broker:
    kind = ApacheController if name == Apache.name else OttlaController
    return kind(directory, settings or {})
