"""A graph to be drawn: nodes of several kinds, edges between them, and clusters of nodes."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NodeKind(Enum):
    """The value is the word on the box."""

    TOPIC = "topic"
    REPARTITION = "repartition topic"
    OPEN = "topics"
    """Topics whose names are chosen at run time."""
    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"
    STORE = "store"
    SUBTOPOLOGY = "subtopology"
    """All processors of a subtopology, where they are not known one by one."""


class EdgeKind(Enum):
    FLOW = "flow"
    """Records flow along this edge."""
    USES = "uses"
    """From a processor to its store; drawn without an arrow."""


class Rank(Enum):
    """In which layer of its cluster a node must be."""

    ANY = 0
    FIRST = 1
    LAST = 2


class Node(NamedTuple):
    id: str
    name: str
    kind: NodeKind
    cluster: str | None = None
    rank: Rank = Rank.ANY
    label: str = ""
    """What is written on the box; the name if it is empty."""

    @property
    def words(self) -> str:
        return self.label or self.name


class Edge(NamedTuple):
    source: str
    target: str
    kind: EdgeKind


class Cluster(NamedTuple):
    id: str
    title: str


class Graph(NamedTuple):
    """Edges must not lead from one cluster into another: clusters are connected by nodes outside of them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    clusters: tuple[Cluster, ...] = ()
