"""Reads the topology in a StreamsGroupDescribe response, from v1 on, of clusters that store descriptions."""

from __future__ import annotations

from itertools import count
from typing import Final

from ottla.draw.topology import Kind, Subtopology, Topology, TopologyNode
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescription as Description
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescriptionNode as Node

KINDS: Final = {1: Kind.SOURCE, 2: Kind.PROCESSOR, 3: Kind.SINK}


def topology_of(description: Description) -> Topology:
    """The topology. Global stores come last, as subtopologies of their own.

    Kafka Streams numbers them along with the others, and does not tell their numbers: they get those that are left.
    """
    parts = [Subtopology(each.subtopology_id, tuple(map(_node, each.nodes))) for each in description.subtopologies]
    taken = {each.id for each in parts}
    free = (name for name in map(str, count()) if name not in taken)
    stores = [
        Subtopology(name, (_node(each.source), _node(each.processor)), is_global=True)
        for name, each in zip(free, description.global_stores, strict=False)
    ]
    return Topology((*parts, *stores))


def _node(each: Node) -> TopologyNode:
    # An unknown kind is drawn as a processor, which may have stores and successors.
    kind = KINDS.get(each.node_type, Kind.PROCESSOR)
    return TopologyNode(
        each.name,
        kind,
        topics=tuple(each.source_topics),
        sink_topic=each.sink_topic,
        stores=tuple(each.stores),
        successors=tuple(each.successors),
    )
