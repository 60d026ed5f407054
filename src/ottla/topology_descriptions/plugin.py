"""What a plugin must be able to do, and how it says that it cannot.

A broker has one instance, made without arguments from the class that `group.streams.topology.description.plugin.class`
names. All its methods are called on the broker's event loop: one that takes long must await something, or the whole
broker waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from ottla.topology_descriptions.description import TopologyDescription

__all__ = ["Broker", "PermanentFailure", "TopicTable", "TopologyDescriptionPlugin", "TransientFailure"]


class PermanentFailure(Exception):
    """A description will never be taken at this epoch. Its text reaches the application that sent it."""


class TransientFailure(Exception):
    """It did not work now, and may later. Any other exception counts as this one. The text reaches the application."""


class TopicTable(Protocol):
    """A compacted topic of the cluster, read as a table: the last value of each key."""

    async def get(self, key: bytes) -> bytes | None: ...

    async def put(self, key: bytes, value: bytes | None) -> None:
        """Returns when it is committed; None removes the key. PermanentFailure for what is too large for the topic."""
        ...


class Broker(Protocol):
    """What a plugin may ask of the broker that it runs in."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the broker was configured with, as texts; also settings that only the plugin knows."""
        ...

    async def open_table(self, topic: str) -> TopicTable:
        """A compacted topic, created if it does not exist."""
        ...


class TopologyDescriptionPlugin(ABC):
    """Keeps the descriptions of topologies. Each call has a time limit of 30 s, after which it is cancelled and counts
    as a transient failure. Calls that set or delete the description of one group never overlap: the next one begins
    when the one before has ended, cancelled or not. So a call must not change anything after it has ended."""

    async def start(self, broker: Broker) -> None:  # noqa: B027 - many plugins need neither this nor `close`
        """Called once, before the broker serves. An exception stops the broker's start."""

    @abstractmethod
    async def set_topology(self, group_id: str, topology_epoch: int, description: TopologyDescription) -> None:
        """Keep a description. It may come again for the same group and epoch, and is the same then; one for a later
        epoch replaces it. Raise `PermanentFailure` or `TransientFailure`."""

    @abstractmethod
    async def get_topology(self, group_id: str, topology_epoch: int) -> TopologyDescription | None:
        """The description of this epoch, or None if it is not held, or not any more."""

    @abstractmethod
    async def delete_topology(self, group_id: str) -> None:
        """Forget everything of a group; also if nothing is held."""

    async def close(self) -> None:  # noqa: B027
        """Called once, when the broker has answered its last request."""
