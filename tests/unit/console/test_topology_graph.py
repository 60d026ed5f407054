"""The graph of a topology page: processors if they are known, else subtopologies between their topics."""

from __future__ import annotations

from ottla.console.pages.group_topology import Processor, SubtopologyRow, TopologyPage, graph_in
from ottla.draw.graph import NodeKind

NODES = (
    Processor("read", "source", ("lines",), None, (), ("write",)),
    Processor("write", "sink", (), "out", (), ()),
)


def page(*rows: SubtopologyRow, shown: str | None = None, why: str | None = None) -> TopologyPage:
    return TopologyPage("g", 0, list(rows), shown, why, [], [])


def row(name: str, nodes: tuple[Processor, ...] | None = NODES, *, is_global: bool = False) -> SubtopologyRow:
    return SubtopologyRow(name, is_global, ("lines",), ("app-r",), ("app-log",), 2, nodes)


def test_titles_have_the_number_of_tasks():
    graph = graph_in(page(row("0"), row("1", is_global=True)))
    assert [each.title for each in graph.clusters] == ["subtopology 0: 2 tasks", "global store 1"]


def test_one_subtopology_alone():
    assert [each.title for each in graph_in(page(row("0"), row("1"), shown="1")).clusters] == ["subtopology 1: 2 tasks"]


def test_without_processors():
    graph = graph_in(page(row("0", None), why="nobody tells"))
    assert graph.clusters == ()
    assert {(each.kind, each.name) for each in graph.nodes} == {
        (NodeKind.SUBTOPOLOGY, "0: 2 tasks"),
        (NodeKind.TOPIC, "lines"),
        (NodeKind.REPARTITION, "app-r"),
        (NodeKind.STORE, "app-log"),
    }
