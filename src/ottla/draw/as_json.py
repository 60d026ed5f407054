"""A topology as plain values, for programs."""

from __future__ import annotations

from ottla.draw.topology import Kind, Topology, TopologyNode


def topology_json(topology: Topology) -> dict[str, object]:
    """Subtopologies with their nodes, under the names that a broker's response has."""
    return {
        "subtopologies": [
            {"id": part.id, "global": part.is_global, "nodes": [_node(node) for node in part.nodes]}
            for part in topology.subtopologies
        ]
    }


def _node(node: TopologyNode) -> dict[str, object]:
    found: dict[str, object] = {"name": node.name, "type": node.kind.value}
    if node.kind is Kind.SOURCE:
        found |= {"topics": list(node.topics)} | ({"pattern": node.pattern} if node.pattern is not None else {})
    elif node.kind is Kind.SINK:
        found["topic"] = node.sink_topic
    else:
        found["stores"] = list(node.stores)
    return found | {"successors": list(node.successors)}
