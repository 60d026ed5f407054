"""Reads the topology in a StreamsGroupDescribe response, from v1 on, of clusters that store descriptions."""

from __future__ import annotations

from typing import Final

from ottla.draw.topology import Kind, Subtopology, Topology, TopologyNode
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescription as Description
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescriptionNode as Node

KINDS: Final = {1: Kind.SOURCE, 2: Kind.PROCESSOR, 3: Kind.SINK}


def topology_of(description: Description) -> Topology:
    """The topology. Global stores come last, as subtopologies of their own with the next numbers."""
    parts = [Subtopology(each.subtopology_id, tuple(map(_node, each.nodes))) for each in description.subtopologies]
    stores = [
        Subtopology(str(len(parts) + at), (_node(each.source), _node(each.processor)), is_global=True)
        for at, each in enumerate(description.global_stores)
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
