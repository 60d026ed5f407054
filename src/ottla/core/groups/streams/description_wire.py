"""Descriptions of topologies on the wire: as members push them, and as StreamsGroupDescribe shows them."""

from __future__ import annotations

from typing import Final

from ottla.topology_descriptions.description import (
    GlobalStore,
    Node,
    Processor,
    Sink,
    Source,
    Subtopology,
    TopologyDescription,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescription as Shown
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponseTopologyDescriptionGlobalStore as ShownGlobalStore,
)
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescriptionNode as ShownNode
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponseTopologyDescriptionSubtopology as ShownSubtopology,
)
from ottla.wire.types.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription as Pushed,
)
from ottla.wire.types.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore as PushedGlobalStore,
)
from ottla.wire.types.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode as PushedNode,
)

__all__ = ["described", "description_of"]

_SOURCE: Final = 1
_PROCESSOR: Final = 2
_SINK: Final = 3


def description_of(pushed: Pushed) -> TopologyDescription:
    """INVALID_REQUEST if it has nodes of unknown types, or a global store that is not a source and a processor. Fields
    that a node's type does not have are ignored, as Apache Kafka ignores them: stores of a source, for instance."""
    return TopologyDescription(
        tuple(Subtopology(each.subtopology_id, tuple(map(_node, each.nodes))) for each in pushed.subtopologies),
        tuple(map(_global_store, pushed.global_stores)),
    )


def _node(pushed: PushedNode) -> Node:
    if pushed.node_type == _SOURCE:
        return Source(pushed.name, pushed.source_topics, pushed.successors)
    if pushed.node_type == _PROCESSOR:
        return Processor(pushed.name, pushed.stores, pushed.successors)
    if pushed.node_type == _SINK:
        return Sink(pushed.name, pushed.sink_topic, pushed.successors)
    raise Reject(ErrorCode.INVALID_REQUEST, f"node {pushed.name} is of unknown type {pushed.node_type}")


def _global_store(pushed: PushedGlobalStore) -> GlobalStore:
    source, processor = _node(pushed.source), _node(pushed.processor)
    if not isinstance(source, Source) or not isinstance(processor, Processor):
        raise Reject(
            ErrorCode.INVALID_REQUEST,
            f"a global store is a source and a processor, which {source.name} and {processor.name} are not",
        )
    return GlobalStore(source, processor)


def described(description: TopologyDescription) -> Shown:
    """As it came."""
    return Shown(
        tuple(ShownSubtopology(each.id, tuple(map(_shown, each.nodes))) for each in description.subtopologies),
        tuple(ShownGlobalStore(_shown(each.source), _shown(each.processor)) for each in description.global_stores),
    )


def _shown(node: Node) -> ShownNode:
    if isinstance(node, Source):
        return ShownNode(node.name, _SOURCE, source_topics=node.topics, successors=node.successors)
    if isinstance(node, Processor):
        return ShownNode(node.name, _PROCESSOR, stores=node.stores, successors=node.successors)
    return ShownNode(node.name, _SINK, sink_topic=node.topic, successors=node.successors)
