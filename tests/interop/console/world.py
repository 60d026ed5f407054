"""A cluster with groups of all four kinds at work: the nodes and the workloads of the demo, without its incidents."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.cli.demo.children import Children
from ottla.cli.demo.cluster_state import ClusterState
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.nodes import Nodes, OttlaNodes
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.workload_processes import WorkloadProcesses
from tests.interop.demo.apache_nodes import ApacheNodes
from tests.interop.node.brokers import APACHE

STABLE_S = 120
START_S = 300


class _World:
    def __init__(self, kind: str, path: Path) -> None:
        self._kind = kind
        self._directory = DemoDirectory(path)
        self._over: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.bootstrap_servers = ""
        self.problem: BaseException | None = None
        self.begun = threading.Event()

    def run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:
            self.problem = error
            raise
        finally:
            self.begun.set()

    def end(self) -> None:
        if self._loop is not None and self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)

    async def _live(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._directory.prepare()
        plan = Plan(1, 1.0)
        async with Children(self._directory.said) as children:
            nodes: Nodes
            if self._kind == APACHE:
                nodes = apache = ApacheNodes(self._directory.data, plan)
            else:
                nodes, apache = OttlaNodes(children, self._directory.data, plan), None
            try:
                await nodes.start()
                state = ClusterState(nodes.bootstrap)
                await state.create_topics()
                await state.start_share_at_the_beginning()
                await WorkloadProcesses(children, self._directory, plan, nodes, None).enter()
                await state.stable(STABLE_S)
                self.bootstrap_servers = nodes.bootstrap
                self.begun.set()
                await self._over.wait()
            finally:
                if apache is not None:
                    apache.close()


@contextmanager
def world(kind: str, path: Path) -> Iterator[str]:
    """The bootstrap servers of a cluster that is at work."""
    living = _World(kind, path)
    thread = threading.Thread(target=living.run, daemon=True)
    thread.start()
    try:
        assert living.begun.wait(START_S), "the groups did not form"
        if living.problem is not None:
            raise living.problem
        yield living.bootstrap_servers
    finally:
        living.end()
        thread.join(START_S)
