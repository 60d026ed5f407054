"""Starts the processes of the workloads and commands them."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict

from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.nodes import Nodes
from ottla.cli.demo.plan import AUDIT, BILLING_MEMBERS, RISK_CHECKS, WORD_TOTALS, Plan
from ottla.cli.demo.word_totals import Application

__all__ = ["WorkloadProcesses"]


class WorkloadProcesses:
    """The workloads by name. `application` is the Kafka Streams program, if it can run."""

    def __init__(
        self, children: Children, directory: DemoDirectory, plan: Plan, nodes: Nodes, application: Application | None
    ) -> None:
        self._children = children
        self._directory = directory
        self._plan = plan
        self._nodes = nodes
        self._application = application
        self.playing: dict[str, Child] = {}

    async def enter(self) -> None:
        """Start all but the second process of the streams group."""
        await self._python("producers", "producers")
        for name in BILLING_MEMBERS:
            await self._python(name, "consumer")
        await self._python(RISK_CHECKS, "share")
        await self._python(AUDIT, "classic")
        await self.enter_word_totals(1)

    async def enter_word_totals(self, number: int) -> None:
        name = f"{WORD_TOTALS}-{number}"
        if self._application is None:
            await self._python(name, "streams")
            return
        command = self._application.command(name, self._nodes.bootstrap, self._directory, self._plan)
        self.playing[name] = await self._children.start(name, command, listens=True)

    async def _python(self, name: str, workload: str) -> None:
        orders = {
            "bootstrap": self._nodes.bootstrap,
            "plan": asdict(self._plan),
            "journal": str(self._directory.journal_of(name)),
        }
        command = [sys.executable, "-m", "ottla.cli.demo.workloads", workload, json.dumps(orders)]
        self.playing[name] = await self._children.start(name, command, listens=True)

    async def tell(self, name: str, line: str) -> None:
        await self.playing[name].tell(line)

    async def kill(self, name: str) -> None:
        await self.playing.pop(name).kill()

    async def exit(self, name: str) -> None:
        """Let one end normally."""
        child = self.playing.pop(name)
        await child.end()

    async def exit_all(self) -> None:
        """End all at once, so that none takes over the partitions of another."""
        await asyncio.gather(*(self.exit(name) for name in list(self.playing)))

    def check(self) -> None:
        """Raises ChildDied if one of them has ended."""
        for child in self.playing.values():
            child.check()
