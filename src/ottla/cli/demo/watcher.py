"""What a user runs beside a cluster: `ottla observe` during the demo, and `ottla console` after it."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Final

from ottla.cli.console_process import missing_package
from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.nodes import Nodes
from ottla.cli.demo.plan import Plan

__all__ = ["Watcher", "start_console"]

CONSOLE: Final = re.compile(r"^console=(\S+)", re.MULTILINE)
POLL_S: Final = 0.05


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


async def start_console(children: Children, nodes: Nodes, out: Path) -> str | None:
    """Start a console, which knows the story from the observer's topic. Its address, or None if it is not installed."""
    if missing_package() is not None:
        return None
    command = [sys.executable, "-m", "ottla", "console", "--bootstrap", nodes.bootstrap, "--port", "0"]
    child = await children.start("console", [*command, "--pipeline", str(out)])
    while (found := CONSOLE.search(child.said.read_text())) is None:
        child.check()
        await asyncio.sleep(POLL_S)
    return found[1]
