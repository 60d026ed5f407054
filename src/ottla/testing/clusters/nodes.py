"""One node of a cluster: a process that can be stopped, killed, paused and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from ottla.testing.clusters.layout import BROKER, CONTROLLER, NodeLayout
from ottla.testing.ports import PortReservation

__all__ = ["OTTLA", "ClusterError", "ClusterNode", "NodeState", "Program", "ottla_node", "wait_until"]

START_MAX_SECONDS: Final = 60.0
STOP_MAX_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02
_TAIL_BYTES: Final = 4096


class ClusterError(Exception):
    """A cluster, or a node of it, cannot do what it was told; the text says why."""


class NodeState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"
    """It has ended by itself."""


class Program(NamedTuple):
    """What a node runs."""

    command: Callable[[NodeLayout, Mapping[str, str]], Sequence[str]]
    """Gets the node, and where it reaches the listeners of others (`host:port` -> `host:port`)."""
    ready: str
    """What it says when it serves."""


def ottla_node(*options: str) -> Program:
    """A node of ottla; the options are those of `node_main`."""

    def command(node: NodeLayout, links: Mapping[str, str]) -> Sequence[str]:
        pairs = [f"{known}={other}" for known, other in links.items()]
        module = "ottla.testing.clusters.node_main"
        return (sys.executable, "-m", module, *options, str(node.properties), *pairs)

    return Program(command, "ottla ready ")


OTTLA: Final = ottla_node()
OTTLA_WITHOUT_SYNC: Final = ottla_node("--no-sync")


class ClusterNode:
    """A node under test. Methods return when they have taken effect."""

    def __init__(self, layout: NodeLayout, program: Program, links: Mapping[str, str]) -> None:
        self.layout = layout
        self.program = program
        self._links = dict(links)
        self._ports: list[PortReservation] = []
        try:
            for port in layout.ports.values():
                self._ports.append(PortReservation(port))
        except OSError as error:
            self._release_ports()
            raise ClusterError(f"port {port} of node {layout.node_id} cannot be used: {error.strerror}") from None
        self._process: subprocess.Popen[bytes] | None = None
        self._state = NodeState.STOPPED
        self._said_before = 0

    def __repr__(self) -> str:
        return f"<ClusterNode {self.node_id} {self.state}>"

    @property
    def node_id(self) -> int:
        return self.layout.node_id

    @property
    def is_broker(self) -> bool:
        return self.layout.is_broker

    @property
    def is_controller(self) -> bool:
        return self.layout.is_controller

    @property
    def bootstrap_servers(self) -> str:
        """Host and port for clients."""
        return self.layout.address(BROKER)

    @property
    def controller_bootstrap(self) -> str:
        """Host and port of the controller."""
        return self.layout.address(CONTROLLER)

    @property
    def data_dir(self) -> Path:
        return self.layout.data_dir

    @property
    def log(self) -> str:
        """What the node has said since its last start."""
        with open(self.layout.log, "rb") as file:
            file.seek(self._said_before)
            return file.read().decode(errors="replace")

    @property
    def pid(self) -> int | None:
        """The id of its process, if there is one."""
        return self._process.pid if self.is_running and self._process is not None else None

    @property
    def state(self) -> NodeState:
        if self._state in (NodeState.RUNNING, NodeState.PAUSED):
            assert self._process is not None
            if self._process.poll() is not None:
                self._ended(NodeState.FAILED)
        return self._state

    @property
    def is_running(self) -> bool:
        """Whether it has a process, paused or not."""
        return self.state in (NodeState.RUNNING, NodeState.PAUSED)

    @property
    def is_ready(self) -> bool:
        """Whether it has said, since its last start, that it serves."""
        return self.is_running and self.program.ready in self.log

    # --- orders -------------------------------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> None:
        """Start, or start again on the same ports and data.

        It serves when this returns, which it can only if a majority of the controllers is there; without `wait` its
        process has been started, and no more.
        """
        if self.is_running:
            raise ClusterError(f"node {self.node_id} is already running")
        for port in self._ports:
            port.release()
        self._said_before = self.layout.log.stat().st_size if self.layout.log.exists() else 0
        with open(self.layout.log, "ab") as output:
            self._process = subprocess.Popen(
                self.program.command(self.layout, self._links),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us alone
            )
        self._state = NodeState.RUNNING
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it serves."""
        wait_until(self._has_come, f"node {self.node_id} does not serve", START_MAX_SECONDS, self._tail)

    def stop(self) -> None:
        """Stop cleanly (SIGTERM): leadership moves, everything is written."""
        self.begin_stop()
        self.end_stop()

    def begin_stop(self) -> None:
        """Tell it to stop; `end_stop` waits until it has."""
        self._expect(NodeState.RUNNING)
        self._signal(signal.SIGTERM)

    def end_stop(self) -> None:
        assert self._process is not None
        try:
            self._process.wait(STOP_MAX_SECONDS)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"node {self.node_id} has not stopped in {STOP_MAX_SECONDS:g} s{self._tail()}") from None
        self._ended(NodeState.STOPPED)

    def kill(self) -> None:
        """End it at once, as a crash (SIGKILL)."""
        self._expect(NodeState.RUNNING, NodeState.PAUSED)
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()
        self._ended(NodeState.KILLED)

    def pause(self) -> None:
        """Stop its clock, so to speak (SIGSTOP): it does nothing any more, and its connections stay open."""
        self._expect(NodeState.RUNNING)
        self._signal(signal.SIGSTOP)
        self._state = NodeState.PAUSED

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._expect(NodeState.PAUSED)
        self._signal(signal.SIGCONT)
        self._state = NodeState.RUNNING

    def restart(self) -> None:
        """Stop cleanly, if it runs, and start again."""
        if self.is_running:
            self.stop()
        self.start()

    def close(self) -> None:
        """End it for good."""
        if self.is_running:
            self.kill()
        self._release_ports()

    def _release_ports(self) -> None:
        for port in self._ports:
            port.close()

    # --- its process --------------------------------------------------------------------------------------------------

    def _has_come(self) -> bool:
        if not self.is_running:
            raise ClusterError(f"node {self.node_id} has exited{self._tail()}")
        return self.is_ready

    def _expect(self, *states: NodeState) -> None:
        if self.state not in states:
            raise ClusterError(f"node {self.node_id} is {self.state}")

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _ended(self, state: NodeState) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._state = state
        for port in self._ports:
            port.renew()

    def _tail(self) -> str:
        return f"; the end of {self.layout.log}:\n{self.log[-_TAIL_BYTES:]}"


def wait_until(is_so: Callable[[], object], what: str, seconds: float, more: Callable[[], str] = lambda: "") -> None:
    """Wait until something is so. ClusterError, with `what` is not so, after a time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise ClusterError(f"{what} after {seconds:g} s{more()}")
        time.sleep(_POLL_SECONDS)
