"""The graph of a topology page: processors if they are known, else subtopologies between their topics."""

from __future__ import annotations

import pytest

from ottla.console.group_members import TaskMark
from ottla.console.page import BadQueryError
from ottla.console.pages.group_topology import (
    FOLDED_ABOVE,
    NODES_MAX,
    Options,
    Processor,
    SubtopologyRow,
    TopologyPage,
    bars_of,
    folded_of,
    graph_in,
)
from ottla.draw.graph import NodeKind

NODES = (
    Processor("read", "source", ("lines",), None, (), ("KSTREAM-AGGREGATE-0000000003",)),
    Processor("KSTREAM-AGGREGATE-0000000003", "processor", (), None, ("totals",), ("write",)),
    Processor("write", "sink", (), "out", (), ()),
)
PLAIN = Options(zoom=100, has_short_names=False, has_stores=True, colour="member")


def page(
    *rows: SubtopologyRow,
    shown: str | None = None,
    folded: tuple[str, ...] = (),
    why: str | None = None,
    marks: tuple[TaskMark, ...] = (),
) -> TopologyPage:
    members = [("a", "app-1"), ("b", "app-2")]
    return TopologyPage(
        "g",
        0,
        list(rows),
        shown,
        list(folded),
        why,
        list(marks),
        members,
        {"a": "p", "b": "p"},
        {"0_0": 5, "0_1": 2_000},
    )


def row(name: str, nodes: tuple[Processor, ...] | None = NODES, *, is_global: bool = False) -> SubtopologyRow:
    return SubtopologyRow(name, is_global, ("lines",), ("app-r",), ("app-log",), 2, nodes)


def large(count: int) -> list[SubtopologyRow]:
    """Two subtopologies with so many processors altogether."""
    half = count // 2
    return [row("0", NODES[:1] * half), row("1", NODES[:1] * (count - half))]


def test_titles_have_the_number_of_tasks():
    graph = graph_in(page(row("0"), row("1", is_global=True)), PLAIN)
    assert [each.title for each in graph.clusters] == ["subtopology 0: 2 tasks", "global store 1"]


def test_one_subtopology_alone():
    graph = graph_in(page(row("0"), row("1"), shown="1"), PLAIN)
    assert [each.title for each in graph.clusters] == ["subtopology 1: 2 tasks"]


def test_a_folded_one_says_how_much_is_in_it():
    graph = graph_in(page(row("0"), row("1"), folded=("1",)), PLAIN)
    assert [each.title for each in graph.clusters] == ["subtopology 0: 2 tasks"]
    assert [each.words for each in graph.nodes if each.kind is NodeKind.SUBTOPOLOGY] == [
        "subtopology 1: 3 processors, 2 tasks"
    ]


def test_short_names_and_stores():
    short = graph_in(page(row("0")), PLAIN._replace(has_short_names=True))
    assert {each.words for each in short.nodes} >= {"aggregate 3", "read", "totals"}
    bare = graph_in(page(row("0")), PLAIN._replace(has_stores=False))
    assert {each.kind for each in bare.nodes} == {
        NodeKind.SOURCE, NodeKind.PROCESSOR, NodeKind.SINK, NodeKind.TOPIC,
    }  # fmt: skip


def test_without_processors():
    graph = graph_in(page(row("0", None), why="nobody tells"), PLAIN)
    assert graph.clusters == ()
    assert {(each.kind, each.name) for each in graph.nodes} == {
        (NodeKind.SUBTOPOLOGY, "subtopology 0: 2 tasks"),
        (NodeKind.TOPIC, "lines"),
        (NodeKind.REPARTITION, "app-r"),
        (NodeKind.STORE, "app-log"),
    }


def test_what_is_folded_at_first_depends_on_the_size():
    assert folded_of(large(FOLDED_ABOVE), "") == []
    assert folded_of(large(FOLDED_ABOVE + 1), "") == ["0", "1"]


def test_the_reader_opens_and_folds():
    rows = large(FOLDED_ABOVE + 1)
    assert folded_of(rows, "all") == []
    assert folded_of(rows, "1") == ["0"]
    assert folded_of(rows, "0,1") == []
    assert folded_of(large(4), "none") == ["0", "1"]
    with pytest.raises(BadQueryError, match="there is no subtopology '7'"):
        folded_of(rows, "1,7")


def test_a_very_large_topology_stays_folded():
    assert folded_of(large(NODES_MAX), "all") == []
    assert folded_of(large(NODES_MAX + 1), "all") == ["0", "1"]


def marks() -> tuple[TaskMark, ...]:
    return (
        TaskMark("0_0", "a", "active", "running"),
        TaskMark("0_1", "a", "active", "leaving"),
        TaskMark("0_1", "b", "active", "waiting"),
        TaskMark("0_2", "b", "active", "running"),
        TaskMark("0_0", "b", "standby", "running"),
    )


def test_bars_say_who_has_the_tasks_now():
    bars = bars_of(page(row("0"), row("1"), marks=marks()), PLAIN)
    assert [(each.size, each.letter, each.tone) for each in bars["subtopology:0"]] == [(2, "A", "h0"), (1, "B", "h1")]
    assert bars["subtopology:0"][0].title == "A app-1: 2 of 3 tasks"
    assert bars["subtopology:1"] == []


def test_bars_by_process_and_by_lag():
    data = page(row("0"), marks=marks())
    assert [each[:3] for each in bars_of(data, PLAIN._replace(colour="process"))["subtopology:0"]] == [(3, "A", "h0")]
    by_lag = bars_of(data, PLAIN._replace(colour="lag"))["subtopology:0"]
    assert [(each.letter, each.title) for each in by_lag] == [
        ("1", "0_0: 5 behind"),
        ("2", "0_1: 2,000 behind"),
        ("?", "0_2: not known"),
    ]
