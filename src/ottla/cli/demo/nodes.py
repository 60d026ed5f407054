"""The nodes of the demo: three `ottla serve` on free ports, with data directories that stay."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.plan import NODES, Plan
from ottla.testing.clusters.layout import ClusterLayout
from ottla.testing.ports import LOOPBACK, PortReservation

__all__ = ["Nodes", "OttlaNodes"]

READY: Final = re.compile(r"^ottla ready .*", re.MULTILINE)
POLL_S: Final = 0.02


class Nodes(Protocol):
    """The nodes that the demo needs; tests have others."""

    what: str
    """A description of the software."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def metrics_urls(self) -> Sequence[str]:
        """The URLs of the nodes' metrics pages, if they have any."""

    async def start(self) -> None:
        """Start all nodes; they serve when this returns."""

    async def kill(self, node_id: int) -> None:
        """SIGKILL."""

    async def restart(self, node_id: int) -> None:
        """Start a node again on the same ports and data; it serves when this returns."""

    def check(self) -> None:
        """Raises ChildDied if one has ended that was not killed."""


class OttlaNodes:
    what = "ottla"

    def __init__(self, children: Children, directory: Path, plan: Plan) -> None:
        self._children = children
        self._directory = directory
        self._plan = plan
        self._layout: ClusterLayout | None = None
        self._metrics_ports: dict[int, int] = {}
        self._running: dict[int, Child] = {}

    @property
    def layout(self) -> ClusterLayout:
        assert self._layout is not None, "the nodes have not been started"
        return self._layout

    @property
    def bootstrap(self) -> str:
        return self.layout.bootstrap_servers

    @property
    def metrics_urls(self) -> Sequence[str]:
        return [f"http://{LOOPBACK}:{port}/metrics" for port in self._metrics_ports.values()]

    @property
    def data_dir(self) -> Path:
        """The directory of a node. Every node has a replica of every partition."""
        return self.layout.nodes[0].data_dir

    async def start(self) -> None:
        self._layout = await asyncio.to_thread(
            ClusterLayout.make, self._directory, NODES, settings=self._plan.broker_settings
        )
        kept = [*self._layout.kept_ports, *(PortReservation() for _ in self._layout.nodes)]
        metrics = kept[-len(self._layout.nodes) :]
        self._metrics_ports = {node.node_id: each.port for node, each in zip(self._layout.nodes, metrics, strict=True)}
        for each in kept:
            each.release()
        try:
            await asyncio.gather(*(self.restart(each.node_id) for each in self._layout.nodes))
        finally:
            for each in kept:
                each.close()

    async def restart(self, node_id: int) -> None:
        node = next(each for each in self.layout.nodes if each.node_id == node_id)
        command = [sys.executable, "-m", "ottla", "serve", "--config", str(node.properties)]
        command += ["--metrics-port", str(self._metrics_ports[node_id])]
        child = self._running[node_id] = await self._children.start(f"node-{node_id}", command)
        before = len(READY.findall(child.said.read_text()))
        while len(READY.findall(child.said.read_text())) == before:
            child.check()
            await asyncio.sleep(POLL_S)

    async def kill(self, node_id: int) -> None:
        await self._running.pop(node_id).kill()

    def check(self) -> None:
        for child in self._running.values():
            child.check()
