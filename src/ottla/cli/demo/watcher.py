"""The observer of the story: `ottla observe`, as anybody would run it beside a cluster."""

from __future__ import annotations

import sys

from ottla.cli.demo.children import Child, Children
from ottla.cli.demo.ground import Ground
from ottla.cli.demo.node import Node
from ottla.cli.table import COMMANDS

__all__ = ["Watcher"]


class Watcher:
    def __init__(self, children: Children, ground: Ground) -> None:
        self._children = children
        self._ground = ground
        self._child: Child | None = None

    async def start(self, node: Node) -> None:
        if "observe" not in COMMANDS:
            return
        command = [sys.executable, "-m", "ottla", "observe", "--bootstrap", node.bootstrap]
        self._child = await self._children.start("observer", command)

    def check(self) -> None:
        if self._child is not None:
            self._child.check()

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.end()
