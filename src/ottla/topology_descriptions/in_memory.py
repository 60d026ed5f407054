"""Descriptions in the memory of the broker: gone with the process."""

from __future__ import annotations

from ottla.topology_descriptions.description import TopologyDescription
from ottla.topology_descriptions.plugin import TopologyDescriptionPlugin

__all__ = ["InMemoryPlugin"]


class InMemoryPlugin(TopologyDescriptionPlugin):
    """For tests and for trying things out. After a restart a group whose description was stored is not asked for it
    again, and has none to show until its topology gets another epoch or the group is deleted."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, TopologyDescription]] = {}

    async def set_topology(self, group_id: str, topology_epoch: int, description: TopologyDescription) -> None:
        self._held[group_id] = (topology_epoch, description)

    async def get_topology(self, group_id: str, topology_epoch: int) -> TopologyDescription | None:
        held_epoch, description = self._held.get(group_id, (None, None))
        return description if held_epoch == topology_epoch else None

    async def delete_topology(self, group_id: str) -> None:
        self._held.pop(group_id, None)
