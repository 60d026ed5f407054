"""The topology of a Kafka Streams application, and the graph that shows it.

A source reads topics, a processor uses stores, a sink writes a topic; only topics connect subtopologies. So topics and
stores are nodes in the graph, which shows which processors share a store and which topic connects two subtopologies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from itertools import chain
from typing import NamedTuple

from ottla.draw.graph import Cluster, Edge, EdgeKind, Graph, Node, NodeKind, Rank
from ottla.health.phrases import plural

REPARTITION_SUFFIX = "-repartition"
PER_RECORD = "chosen per record"
NO_TOPICS = "topics by a pattern"


class Kind(Enum):
    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"


class TopologyNode(NamedTuple):
    name: str
    kind: Kind
    topics: tuple[str, ...] = ()
    """The topics that a source reads."""
    pattern: str | None = None
    """The pattern of a source that reads all topics that match."""
    sink_topic: str | None = None
    """The topic that a sink writes; None if it chooses one for each record."""
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class Subtopology(NamedTuple):
    id: str
    nodes: tuple[TopologyNode, ...]
    is_global: bool = False
    """Whether it fills a global store, so that no task runs it."""


class Topology(NamedTuple):
    subtopologies: tuple[Subtopology, ...]


class SubtopologyTopics(NamedTuple):
    """What is known of a subtopology without its description."""

    id: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """Repartition topics only: brokers are not told of the others."""
    changelogs: tuple[str, ...]


def graph_of_topics(parts: Iterable[SubtopologyTopics]) -> Graph:
    """The graph of subtopologies whose processors are not known: each is a node between its topics."""
    nodes: dict[str, Node] = {}
    edges: dict[Edge, None] = {}
    known = list(parts)
    internal = {name for part in known for name in part.writes}
    for number, part in enumerate(known):
        here = part_id(number)
        nodes[here] = Node(here, part.id, NodeKind.SUBTOPOLOGY)
        for name in chain(part.reads, part.writes):
            nodes[_topic_id(name)] = Node(
                _topic_id(name), name, NodeKind.REPARTITION if name in internal else NodeKind.TOPIC
            )
        nodes |= {_store_id(here, name): Node(_store_id(here, name), name, NodeKind.STORE) for name in part.changelogs}
        edges |= dict.fromkeys(Edge(_topic_id(name), here, EdgeKind.FLOW) for name in part.reads)
        edges |= dict.fromkeys(Edge(here, _topic_id(name), EdgeKind.FLOW) for name in part.writes)
        edges |= dict.fromkeys(Edge(here, _store_id(here, name), EdgeKind.USES) for name in part.changelogs)
    return Graph(tuple(nodes.values()), tuple(edges))


def graph_of(topology: Topology, folded: Collection[str] = ()) -> Graph:
    """The graph: subtopologies are clusters, topics are outside of them. Those that are folded are one node each."""
    nodes: dict[str, Node] = {}
    edges: dict[Edge, None] = {}
    clusters: list[Cluster] = []
    internal = _repartition_topics(topology)
    for number, part in enumerate(map(_with_distinct_names, topology.subtopologies)):
        cluster = part_id(number)
        if part.id in folded:
            nodes |= {each.id: each for each in _folded(part, cluster, internal) if each.id not in nodes}
            edges |= dict.fromkeys(edge for node in part.nodes for edge in _topic_edges(node, cluster, cluster))
            continue
        clusters.append(Cluster(cluster, _title(part)))
        known = {node.name for node in part.nodes}
        for node in part.nodes:
            drawn = chain(_inside(node, cluster), _topic_nodes(node, cluster, internal))
            nodes |= {each.id: each for each in drawn if each.id not in nodes}
            outside = _topic_edges(node, cluster, _node_id(cluster, node.name))
            edges |= dict.fromkeys(chain(_edges_inside(node, cluster, known), outside))
    return Graph(tuple(nodes.values()), tuple(edges), tuple(clusters))


def _with_distinct_names(part: Subtopology) -> Subtopology:
    """Clients push descriptions, and may name two nodes alike."""
    return part._replace(nodes=tuple({node.name: node for node in part.nodes}.values()))


def without_stores(graph: Graph) -> Graph:
    nodes = tuple(node for node in graph.nodes if node.kind is not NodeKind.STORE)
    return graph._replace(nodes=nodes, edges=tuple(edge for edge in graph.edges if edge.kind is not EdgeKind.USES))


def part_id(number: int) -> str:
    """The id that the subtopology with this number has in a graph: of its cluster, or of its node."""
    return f"subtopology:{number}"


def _folded(part: Subtopology, here: str, internal: set[str]) -> Iterator[Node]:
    yield Node(here, f"{_title(part)}: {plural(len(part.nodes), 'processor')}", NodeKind.SUBTOPOLOGY)
    for node in part.nodes:
        yield from _topic_nodes(node, here, internal)


def _title(part: Subtopology) -> str:
    return f"global store {part.id}" if part.is_global else f"subtopology {part.id}"


def _repartition_topics(topology: Topology) -> set[str]:
    """Topics that the application both writes and reads."""
    nodes = [node for part in topology.subtopologies for node in part.nodes]
    written = {node.sink_topic for node in nodes if node.sink_topic is not None}
    return {name for node in nodes for name in node.topics if name in written and name.endswith(REPARTITION_SUFFIX)}


def _inside(node: TopologyNode, cluster: str) -> Iterator[Node]:
    kinds = {Kind.SOURCE: NodeKind.SOURCE, Kind.PROCESSOR: NodeKind.PROCESSOR, Kind.SINK: NodeKind.SINK}
    ranks = {Kind.SOURCE: Rank.FIRST, Kind.PROCESSOR: Rank.ANY, Kind.SINK: Rank.LAST}
    yield Node(_node_id(cluster, node.name), node.name, kinds[node.kind], cluster, ranks[node.kind])
    for store in node.stores:
        yield Node(_store_id(cluster, store), store, NodeKind.STORE, cluster)


def _edges_inside(node: TopologyNode, cluster: str, known: set[str]) -> Iterator[Edge]:
    here = _node_id(cluster, node.name)
    for successor in node.successors:
        if successor in known:
            yield Edge(here, _node_id(cluster, successor), EdgeKind.FLOW)
    for store in node.stores:
        yield Edge(here, _store_id(cluster, store), EdgeKind.USES)


def _topic_nodes(node: TopologyNode, cluster: str, internal: set[str]) -> Iterator[Node]:
    for name in _topics(node):
        yield Node(_topic_id(name), name, NodeKind.REPARTITION if name in internal else NodeKind.TOPIC)
    if _open_end(node):
        text = PER_RECORD if node.kind is Kind.SINK else node.pattern or NO_TOPICS
        yield Node(_open_id(cluster, node), text, NodeKind.OPEN)


def _topic_edges(node: TopologyNode, cluster: str, here: str) -> Iterator[Edge]:
    """The edges between topics and the node, or `here`, which stands for it."""
    open_ids = [_open_id(cluster, node)] if _open_end(node) else []
    for other in chain(map(_topic_id, _topics(node)), open_ids):
        yield Edge(here, other, EdgeKind.FLOW) if node.kind is Kind.SINK else Edge(other, here, EdgeKind.FLOW)


def _topics(node: TopologyNode) -> Iterable[str]:
    if node.kind is Kind.SINK:
        return () if node.sink_topic is None else (node.sink_topic,)
    return node.topics if node.kind is Kind.SOURCE else ()


def _open_end(node: TopologyNode) -> bool:
    """Whether a node reads or writes topics whose names are not in the description."""
    return node.kind is not Kind.PROCESSOR and not _topics(node)


def _node_id(cluster: str, name: str) -> str:
    return f"{cluster}/node:{name}"


def _store_id(cluster: str, name: str) -> str:
    return f"{cluster}/store:{name}"


def _topic_id(name: str) -> str:
    return f"topic:{name}"


def _open_id(cluster: str, node: TopologyNode) -> str:
    return f"{_node_id(cluster, node.name)}/topics"
