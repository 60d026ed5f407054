"""A quorum of three nodes on real sockets, in one event loop of a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.node import Node
from ottla.broker.replicas.formatter import format_directories
from ottla.core.quorum.initial_controllers import read_initial_controllers
from ottla.log.disk import OsDisk
from ottla.testing.ports import PortReservation
from ottla.wire import uuid_text

__all__ = ["NODES", "ThreeNodes", "three_nodes"]

NODES = (1, 2, 3)
CLUSTER_ID = "b3R0bGEtdGVzdC0wMDAwMw"
WAIT_MAX_SECONDS = 60

Result = TypeVar("Result")


class ThreeNodes:
    """Combined nodes 1, 2 and 3."""

    def __init__(self, directory: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self.nodes: dict[int, Node] = {}
        self._disk = OsDisk(durable=False)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="three-nodes", daemon=True)
        self._kept = [PortReservation() for _ in range(2 * len(NODES))]
        ports = [each.port for each in self._kept]
        self.ports = dict(zip(NODES, ports[: len(NODES)], strict=True))
        controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        entries = ",".join(f"{each}@127.0.0.1:{controllers[each]}:{uuid_text(bytes([each] * 16))}" for each in NODES)
        voters = read_initial_controllers(entries, "CONTROLLER")
        self._configs = {}
        for number in NODES:
            own = {
                "node.id": str(number),
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[number]},CONTROLLER://127.0.0.1:{controllers[number]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in controllers.values()),
                "log.dirs": str(directory / f"node-{number}"),
            }
            self._configs[number] = NodeConfig(own, settings)
            format_directories(self._disk, self._configs[number], 0, cluster_id=CLUSTER_ID, voters=voters)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def leader_id(self) -> int:
        return next(number for number, node in self.nodes.items() if node.raft.is_leader)

    def data_dir(self, number: int) -> Path:
        return Path(self._configs[number].log_dirs[0])

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something in the loop of the nodes, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_MAX_SECONDS)

    def start(self) -> None:
        self._thread.start()
        for each in self._kept:
            each.release()

        async def start() -> None:
            started = await asyncio.gather(*(Node.start(each, disk=self._disk) for each in self._configs.values()))
            self.nodes = dict(zip(NODES, started, strict=True))

        self.run(start())

    def kill(self, number: int) -> None:
        self.run(self.nodes.pop(number).kill())

    def close(self) -> None:
        async def stop() -> None:
            await asyncio.gather(*(node.stop() for node in self.nodes.values()))

        self.run(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_MAX_SECONDS)
        self._loop.close()
        for each in self._kept:
            each.close()


@contextmanager
def three_nodes(directory: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[ThreeNodes]:
    nodes = ThreeNodes(directory, settings)
    nodes.start()
    try:
        yield nodes
    finally:
        nodes.close()
