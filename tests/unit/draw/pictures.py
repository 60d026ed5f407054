"""What the tests of drawings share: the topologies that the real library described, and small graphs."""

from pathlib import Path

from ottla.draw.describe_text import parse_describe_text
from ottla.draw.graph import Edge, EdgeKind, Graph, Node, NodeKind
from ottla.draw.topology import Topology, graph_of

GOLDEN = Path(__file__).parents[2] / "golden" / "topologies"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))


def topology(name: str) -> Topology:
    return parse_describe_text((GOLDEN / f"{name}.txt").read_text(encoding="utf-8"))


def graph(name: str) -> Graph:
    return graph_of(topology(name))


def plain(*arrows: str) -> Graph:
    """A graph without clusters: "a>b" is an edge."""
    pairs = [arrow.split(">") for arrow in arrows]
    nodes = dict.fromkeys(name for pair in pairs for name in pair)
    return Graph(
        tuple(Node(name, name, NodeKind.PROCESSOR) for name in nodes),
        tuple(Edge(source, target, EdgeKind.FLOW) for source, target in pairs),
    )
