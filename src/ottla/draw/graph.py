"""What is to be drawn: nodes of some kinds, edges between them, and clusters that hold some of the nodes."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NodeKind(Enum):
    """The value is the word that stands on the box."""

    TOPIC = "topic"
    REPARTITION = "repartition topic"
    OPEN = "topics"
    """Topics whose names are not known beforehand."""
    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"
    STORE = "store"


class EdgeKind(Enum):
    FLOW = "flow"
    """Records go this way."""
    USES = "uses"
    """A processor and its store; drawn without an arrow."""


class Place(Enum):
    """Where in its cluster a node has to be."""

    ANY = 0
    FIRST = 1
    LAST = 2


class Node(NamedTuple):
    id: str
    name: str
    kind: NodeKind
    cluster: str | None = None
    place: Place = Place.ANY


class Edge(NamedTuple):
    source: str
    target: str
    kind: EdgeKind


class Cluster(NamedTuple):
    id: str
    title: str


class Graph(NamedTuple):
    """Edges between nodes of different clusters are not drawn well: clusters meet through nodes outside of all."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    clusters: tuple[Cluster, ...] = ()
