"""What a Kafka Streams application consists of, as its members describe it: `Topology.describe()` without the layout.

Everything here is immutable, and compares by value. `to_json` and `from_json` are for plugins that keep descriptions
outside of the process: a description comes back equal, whichever release wrote it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

__all__ = [
    "GlobalStore",
    "Node",
    "Processor",
    "Sink",
    "Source",
    "Subtopology",
    "TopologyDescription",
    "from_json",
    "to_json",
]


class Source(msgspec.Struct, frozen=True, tag="source", tag_field="type"):
    """Reads topics."""

    name: str
    topics: tuple[str, ...] = ()
    """Empty if a pattern chooses them."""
    successors: tuple[str, ...] = ()
    """Names of the nodes that get what this one gives."""


class Processor(msgspec.Struct, frozen=True, tag="processor", tag_field="type"):
    """Works on records, with stores or without."""

    name: str
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class Sink(msgspec.Struct, frozen=True, tag="sink", tag_field="type"):
    """Writes a topic."""

    name: str
    topic: str | None = None
    """None if it is chosen record by record."""
    successors: tuple[str, ...] = ()


Node: TypeAlias = Source | Processor | Sink


class Subtopology(msgspec.Struct, frozen=True):
    """Nodes that hang together; one task works on them for each partition of their topics."""

    id: str
    nodes: tuple[Node, ...] = ()


class GlobalStore(msgspec.Struct, frozen=True):
    """A store that every process fills from all partitions of a topic."""

    source: Source
    processor: Processor


class TopologyDescription(msgspec.Struct, frozen=True):
    """All of it, in the order in which the application told it."""

    subtopologies: tuple[Subtopology, ...] = ()
    global_stores: tuple[GlobalStore, ...] = ()

    def topics(self) -> frozenset[str]:
        """The topics that it names."""
        nodes = [node for part in self.subtopologies for node in part.nodes]
        sources = [node for node in nodes if isinstance(node, Source)] + [each.source for each in self.global_stores]
        sinks = {node.topic for node in nodes if isinstance(node, Sink) and node.topic is not None}
        return frozenset(sinks.union(*(each.topics for each in sources)))


def to_json(description: TopologyDescription) -> bytes:
    return msgspec.json.encode(description)


def from_json(data: bytes) -> TopologyDescription:
    """ValueError if that is no description."""
    return msgspec.json.decode(data, type=TopologyDescription)
