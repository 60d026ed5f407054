"""The observer of the demo: `ottla observe`, as a user runs it beside a cluster."""

from __future__ import annotations

import sys

from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.nodes import Nodes
from ottla.cli.demo.plan import Plan

__all__ = ["Watcher"]


class Watcher:
    def __init__(self, children: Children, plan: Plan) -> None:
        self._children = children
        self._plan = plan
        self._child: Child | None = None

    async def start(self, nodes: Nodes) -> None:
        command = [sys.executable, "-m", "ottla", "observe", "--bootstrap", nodes.bootstrap, "--backoff-max", "2s"]
        for kind, seconds in self._plan.intervals_s.items():
            command += ["--interval", f"{kind}={seconds:g}"]
        for url in nodes.metrics_urls:
            command += ["--metrics", url]
        self._child = await self._children.start("observer", command)

    def check(self) -> None:
        if self._child is not None:
            self._child.check()

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.end()
