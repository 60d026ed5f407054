"""Hosts a node under test: its faults, its clock and the commands of the test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.clock import ShiftedClock
from ottla.broker.node import Node
from ottla.log.disk import OsDisk
from ottla.testing.faults import FaultRules, FaultyDispatch

__all__ = ["NodeHost"]


class NodeHost:
    """Runs one node after the other on the same directory and ports, on the event loop of the nodes."""

    def __init__(self, settings: Mapping[str, str], *, durable: bool) -> None:
        self.settings = dict(settings)
        self.rules = FaultRules()
        self.clock = ShiftedClock()
        self._durable = durable
        self.node: Node | None = None
        self.on_failure: Callable[[], None] | None = None
        """Called when the node has failed and stopped."""
        self._ending: asyncio.Task[None] | None = None
        self._commands: dict[str, Callable[..., Any]] = {
            "add_fault": self.rules.add,
            "hits": self.rules.hits,
            "remove_fault": self.rules.remove,
            "clear_faults": self.rules.clear,
            "advance": self._advance,
            "close_connections": self._close_connections,
        }

    async def start(self, listeners: str, shift_ms: int) -> dict[str, Any]:
        """Start a node with its clocks moved ahead; returns its ports and names."""
        self.clock.shift_ms = shift_ms
        config = NodeConfig(self.settings, {"listeners": listeners})
        node = self.node = await Node.start(
            config,
            clock=self.clock,
            disk=OsDisk(durable=self._durable),
            on_fatal=self._end_after_failure,
            dispatch=partial(FaultyDispatch, self.rules),
        )
        ports = {name: listener.address[1] for name, listener in node.listeners.items()}
        return {"ports": ports, "cluster_id": node.cluster_id, "node_id": node.node_id, "pid": os.getpid()}

    def _end_after_failure(self, reason: str) -> None:
        async def end() -> None:
            await self.end(clean=False)
            if self.on_failure is not None:
                self.on_failure()

        self._ending = asyncio.get_running_loop().create_task(end())

    async def end(self, *, clean: bool) -> None:
        node, self.node = self.node, None
        if node is None:
            return
        self.rules.clear()  # as at the end of a process
        if clean:
            self.rules.let_go()
            await node.stop()
        else:
            await node.kill()
            for directory in node.storage.all:
                directory.storage.open_files.close_all()

    def perform(self, command: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
        return self._commands[command](**arguments)

    def _advance(self, ms: int) -> None:
        """Move the clocks ahead; everything that becomes due is done before this returns."""
        self.clock.shift_ms += ms
        self._running.housekeeping.run_due()
        self._running.run_timers()

    def _close_connections(self) -> int:
        connections = [each for listener in self._running.listeners.values() for each in listener.connections]
        for connection in connections:
            connection.close("the test asked for it")
        return len(connections)

    @property
    def _running(self) -> Node:
        assert self.node is not None, "orders are given to running brokers only"
        return self.node
