"""Descriptions in a compacted topic of the cluster: they survive restarts, and go where the topic's leader goes.

A record's key is the group id, its value JSON: `{"topology_epoch": 0, "description": {...}}`. So anybody who may read
the topic can read the descriptions with a plain consumer.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.topology_descriptions.description import TopologyDescription
from ottla.topology_descriptions.plugin import Broker, TopicTable, TopologyDescriptionPlugin

__all__ = ["TOPIC", "TopicPlugin"]

TOPIC: Final = "__ottla_topology_descriptions"


class _Held(msgspec.Struct, frozen=True):
    topology_epoch: int
    description: TopologyDescription


class TopicPlugin(TopologyDescriptionPlugin):
    """The plugin for daily use."""

    _table: TopicTable

    async def start(self, broker: Broker) -> None:
        self._table = await broker.open_table(TOPIC)

    async def set_topology(self, group_id: str, topology_epoch: int, description: TopologyDescription) -> None:
        key, value = group_id.encode(), msgspec.json.encode(_Held(topology_epoch, description))
        if await self._table.get(key) != value:
            await self._table.put(key, value)

    async def get_topology(self, group_id: str, topology_epoch: int) -> TopologyDescription | None:
        value = await self._table.get(group_id.encode())
        if value is None:
            return None
        held = msgspec.json.decode(value, type=_Held)
        return held.description if held.topology_epoch == topology_epoch else None

    async def delete_topology(self, group_id: str) -> None:
        key = group_id.encode()
        if await self._table.get(key) is not None:
            await self._table.put(key, None)
