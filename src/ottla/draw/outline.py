"""A graph as an outline, for terminals too narrow for boxes: one line for each node, with its successors below.

A single successor stays in the column of its predecessor, so that a long chain does not leave the window; several are
indented. A node with several predecessors is written in full once, and then by its name.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.draw.graph import Edge, EdgeKind, Graph, Node, Rank
from ottla.draw.palette import TERMINAL_COLOURS
from ottla.draw.text import printable


class _Letters(NamedTuple):
    down: str
    fork: str
    last: str
    go_on: str
    reads: str
    writes: str
    again: str


_BOXES = _Letters("│", "├─ ", "└─ ", "│  ", "◀", "▶", "↑")
_ASCII = _Letters("|", "|- ", "`- ", "|  ", "<-", "->", "see")


def outline(graph: Graph, *, ascii_only: bool = False, colour: bool = False) -> str:
    return _Outline(graph, _ASCII if ascii_only else _BOXES, colour).text()


class _Outline:
    def __init__(self, graph: Graph, letters: _Letters, colour: bool) -> None:
        self._graph, self._letters, self._colour = graph, letters, colour
        self._nodes = {node.id: node for node in graph.nodes}
        self._leaving: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
        self._entering: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
        for edge in graph.edges:
            self._leaving[edge.source].append(edge)
            self._entering[edge.target].append(edge)
        self._told: set[str] = set()
        self._rows: list[str] = []

    def text(self) -> str:
        for cluster in self._graph.clusters:
            self._rows.append(cluster.title)
            members = [node for node in self._graph.nodes if node.cluster == cluster.id]
            firsts = [node for node in members if node.rank is Rank.FIRST]
            # Nodes that the first ones do not lead to come last, so that nothing is left out.
            for start in (*firsts, *members):
                if start.id not in self._told and not self._is_store(start):
                    self._tell(start)
            self._rows.append("")
        return "\n".join(self._rows).rstrip("\n") + "\n"

    def _is_store(self, node: Node) -> bool:
        return any(edge.kind is EdgeKind.USES for edge in self._entering[node.id])

    def _tell(self, start: Node) -> None:
        """Without recursion: a chain may be longer than Python's stack."""
        waiting = [(start, "  ", "  ")]
        while waiting:
            node, first, indent = waiting.pop()
            again = node.id in self._told
            self._rows.append(first + self._row(node, again))
            if again:
                continue
            self._told.add(node.id)
            following = [self._nodes[e.target] for e in self._leaving[node.id] if e.kind is EdgeKind.FLOW]
            inner = [each for each in following if each.cluster == node.cluster]
            if len(inner) == 1:
                waiting.append((inner[0], indent, indent))
                continue
            forks = [(each, indent + self._letters.fork, indent + self._letters.go_on) for each in inner[:-1]]
            forks += [(each, indent + self._letters.last, indent + "   ") for each in inner[-1:]]
            waiting += reversed(forks)

    def _row(self, node: Node, again: bool) -> str:
        word = node.kind.value
        style = TERMINAL_COLOURS[node.kind]
        shown = f"\x1b[{style}m{word}\x1b[0m" if self._colour and style else word
        name = printable(node.words)
        if again:
            return f"{self._letters.again} {shown} {name}"
        return " ".join([shown, name, *self._ends(node)])

    def _ends(self, node: Node) -> list[str]:
        outside = [self._nodes[edge.source] for edge in self._entering[node.id]]
        reads = [printable(each.words) for each in outside if each.cluster is None]
        inside = [(edge.kind, self._nodes[edge.target]) for edge in self._leaving[node.id]]
        writes = [printable(each.words) for kind, each in inside if each.cluster is None and kind is EdgeKind.FLOW]
        stores = [printable(each.words) for kind, each in inside if kind is EdgeKind.USES]
        found = [f"{self._letters.reads} {', '.join(reads)}"] if reads else []
        found += [f"{self._letters.writes} {', '.join(writes)}"] if writes else []
        return found + ([f"[{', '.join(stores)}]"] if stores else [])
