"""Plugins for topology descriptions that do what the group's name says."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.topology_descriptions import (
    Broker,
    InMemoryPlugin,
    PermanentFailure,
    TopologyDescription,
    TopologyDescriptionPlugin,
    TransientFailure,
)


class Unreliable(InMemoryPlugin):
    """`refusing...`, `failing...`, `hanging...`: what set does; `slow...` waits for `may_end`, and cannot be cancelled
    if it is `stubborn`. `unreadable...`, `forgetting...`: what get does. `kept...`: delete fails while `is_broken`."""

    is_broken = True
    calls: list[tuple[Any, ...]]

    def __init__(self) -> None:
        super().__init__()
        self.calls = []
        self.may_end = asyncio.Event()

    def holds(self, group_id: str) -> bool:
        return group_id in self._held

    async def set_topology(self, group_id: str, topology_epoch: int, description: TopologyDescription) -> None:
        self.calls.append(("set", group_id, topology_epoch))
        if group_id.startswith("refusing"):
            raise PermanentFailure("too many nodes")
        if group_id.startswith("failing"):
            raise TransientFailure("no space")
        if group_id.startswith("crashing"):
            raise KeyError("x")
        if group_id.startswith("hanging"):
            await asyncio.Event().wait()
        if group_id.startswith("slow"):
            await self._wait(is_stubborn=group_id.endswith("stubborn"))
        await super().set_topology(group_id, topology_epoch, description)

    async def _wait(self, *, is_stubborn: bool) -> None:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            if not is_stubborn:
                raise
            await self.may_end.wait()

    async def get_topology(self, group_id: str, topology_epoch: int) -> TopologyDescription | None:
        if group_id.startswith("unreadable"):
            raise OSError("disk on fire")
        if group_id.startswith("nonsense"):
            return "nonsense"  # type: ignore[return-value]
        if group_id.startswith("forgetting"):
            return None
        return await super().get_topology(group_id, topology_epoch)

    async def delete_topology(self, group_id: str) -> None:
        self.calls.append(("delete", group_id))
        if group_id.startswith("kept") and self.is_broken:
            raise TransientFailure("a secret of the plugin")
        await super().delete_topology(group_id)


class NotAsynchronous(InMemoryPlugin):
    """What those write who do not read."""

    def set_topology(self, group_id: str, *rest: Any) -> Any:  # type: ignore[override]
        if group_id == "raises":
            raise ValueError("a secret of the plugin")


class CannotBeMade(InMemoryPlugin):
    def __init__(self) -> None:
        raise RuntimeError("no licence")


class CannotStart(InMemoryPlugin):
    async def start(self, broker: Broker) -> None:
        raise RuntimeError(broker.settings["group.streams.topology.description.plugin.place"])


class Unfinished(TopologyDescriptionPlugin):
    """Lacks all methods."""


class NoPlugin:
    """Not a plugin at all."""
