"""The node of the demo: `ottla serve` as a process on a free port, with a data directory that stays."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from pathlib import Path
from typing import Final, Protocol

from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.plan import Plan

__all__ = ["Node", "OttlaNode"]

LOOPBACK: Final = "127.0.0.1"
READY: Final = re.compile(r"^ottla ready .*", re.MULTILINE)
POLL_S: Final = 0.02


class Node(Protocol):
    """The node that the demo needs; tests have others."""

    data_dir: Path
    what: str
    """A description of the software."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def metrics_url(self) -> str | None:
        """The URL of the node's metrics page, if it has one."""

    async def start(self) -> None:
        """Start the node, or start it again on the same port and data; it serves when this returns."""

    async def kill(self) -> None:
        """SIGKILL."""

    def check(self) -> None:
        """Raises ChildDied if it has ended."""


class OttlaNode:
    what = "ottla"

    def __init__(self, children: Children, data_dir: Path, plan: Plan) -> None:
        self.data_dir = data_dir
        self._children = children
        self._port, self._metrics_port = free_ports(2)
        self._settings = plan.broker_settings
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self._port}"

    @property
    def metrics_url(self) -> str | None:
        return f"http://{LOOPBACK}:{self._metrics_port}/metrics"

    async def start(self) -> None:
        command = [sys.executable, "-m", "ottla", "serve", "--data", str(self.data_dir)]
        command += ["--port", str(self._port), "--metrics-port", str(self._metrics_port)]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        self._child = await self._children.start("broker", command)
        before = len(READY.findall(self._child.said.read_text()))
        while len(READY.findall(self._child.said.read_text())) == before:
            self._child.check()
            await asyncio.sleep(POLL_S)

    async def kill(self) -> None:
        assert self._child is not None
        await self._child.kill()

    def check(self) -> None:
        assert self._child is not None
        self._child.check()


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
