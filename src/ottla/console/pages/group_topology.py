"""The topology of a streams group as a drawing and as text, with the tasks of each subtopology."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from ottla.client.streams import Described, topology_description
from ottla.console.group_lookup import find_group_of
from ottla.console.group_members import TaskMark, task_marks
from ottla.console.html.groups import group_head, long_list
from ottla.console.html.parts import Column, facts, link, nothing, offset, section, table, topic_link, with_query
from ottla.console.html.task_matrix import task_chips
from ottla.console.page import BadQueryError, Content, Degraded, Page, PageContext
from ottla.draw.described import topology_of
from ottla.draw.graph import Graph, NodeKind
from ottla.draw.layout import Drawing, layout
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.draw.outline import outline
from ottla.draw.svg import svg_part, svg_text
from ottla.draw.topology import (
    Kind,
    Subtopology,
    SubtopologyTopics,
    Topology,
    TopologyNode,
    graph_of,
    graph_of_topics,
)
from ottla.health.phrases import href, plural
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as DescribedGroup

NODES_MAX: Final = 400
"""A topology with more processors is drawn one subtopology at a time."""
DRAWINGS_KEPT: Final = 32


class Processor(msgspec.Struct, frozen=True):
    """A source, a processor or a sink."""

    name: str
    type: str
    topics: tuple[str, ...]
    sink_topic: str | None
    stores: tuple[str, ...]
    next: tuple[str, ...]


class SubtopologyRow(msgspec.Struct, frozen=True):
    id: str
    is_global: bool
    """Whether it fills a global store, so that no task runs it."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """Repartition topics only, if its processors are not known."""
    changelogs: tuple[str, ...]
    tasks: int
    nodes: tuple[Processor, ...] | None


class TopologyPage(msgspec.Struct, frozen=True):
    group: str
    epoch: int | None
    subtopologies: list[SubtopologyRow]
    shown: str | None
    """The subtopology that is drawn alone."""
    why_no_processors: str | None
    """Why the drawing has no processors."""
    marks: list[TaskMark]
    """Who has which task, or is to have it."""
    members: list[tuple[str, str]]
    """Ids and names."""


async def load(context: PageContext) -> Content[TopologyPage]:
    group = (await find_group_of(context, "streams", "a topology")).fact
    name = group.group
    described, at_ms = await context.watcher.ask(("topology", name), lambda client: topology_description(client, name))
    marks = task_marks(group)
    rows = _rows(described, marks)
    shown = context.choice("subtopology", [each.id for each in rows]) or None
    if shown is not None and described.description is None:
        raise BadQueryError("a single subtopology can be drawn only if its processors are known")
    count = sum(len(each.nodes or ()) for each in rows)
    why = described.why_not or (
        f"there are {count:,} of them; choose a subtopology" if count > NODES_MAX and shown is None else None
    )
    members = [(each.member, each.client or each.member) for each in group.members]
    data = TopologyPage(name, group.topology_epoch, rows, shown, why, marks, members)
    missing = [] if why is None else [Degraded("processors", f"are unknown: {why}")]
    return Content(data, f"Topology of {name}", [context.asked("topology", at_ms)], missing, live=(f"group:{name}",))


def _rows(described: Described, marks: Iterable[TaskMark]) -> list[SubtopologyRow]:
    tasks = {each.task for each in marks if each.role == "active"}
    counts = [task.rpartition("_")[0] for task in tasks]
    nodes = _nodes(described)
    rows = [
        SubtopologyRow(
            each.id, False, each.reads, each.writes, each.changelogs, counts.count(each.id), nodes.pop(each.id, None)
        )
        for each in _topics(described.group)
    ]
    # What is left fills global stores; brokers do not know their topics otherwise.
    return rows + [
        SubtopologyRow(each, True, tuple(topic for node in found for topic in node.topics), (), (), 0, found)
        for each, found in nodes.items()
    ]


def _topics(group: DescribedGroup) -> list[SubtopologyTopics]:
    parts = (group.topology.subtopologies if group.topology is not None else ()) or ()
    return [
        SubtopologyTopics(
            each.subtopology_id,
            (*each.source_topics, *(topic.name for topic in each.repartition_source_topics)),
            tuple(each.repartition_sink_topics),
            tuple(topic.name for topic in each.state_changelog_topics),
        )
        for each in parts
    ]


def _nodes(described: Described) -> dict[str, tuple[Processor, ...]]:
    if described.description is None:
        return {}
    return {
        part.id: tuple(
            Processor(each.name, each.kind.value, each.topics, each.sink_topic, each.stores, each.successors)
            for each in part.nodes
        )
        for part in topology_of(described.description).subtopologies
    }


# --- the drawing ------------------------------------------------------------------------------------------------------


def graph_in(data: TopologyPage) -> Graph:
    """The graph that is drawn: processors if they are known and not too many, else subtopologies with their topics."""
    titles = {each.id: f"{each.id}: {plural(each.tasks, 'task')}" for each in data.subtopologies if not each.is_global}
    if data.why_no_processors is not None:
        return _with_names(graph_of_topics(_topics_of(each) for each in data.subtopologies), titles)
    rows = [each for each in data.subtopologies if data.shown in (None, each.id)]
    graph = graph_of(Topology(tuple(map(_subtopology, rows))))
    clusters = (
        cluster if row.is_global else cluster._replace(title=f"subtopology {titles[row.id]}")
        for cluster, row in zip(graph.clusters, rows, strict=True)
    )
    return graph._replace(clusters=tuple(clusters))


def _with_names(graph: Graph, names: dict[str, str]) -> Graph:
    nodes = (
        each._replace(name=names.get(each.name, each.name)) if each.kind is NodeKind.SUBTOPOLOGY else each
        for each in graph.nodes
    )
    return graph._replace(nodes=tuple(nodes))


def _topics_of(row: SubtopologyRow) -> SubtopologyTopics:
    return SubtopologyTopics(row.id, row.reads, row.writes, row.changelogs)


def _subtopology(row: SubtopologyRow) -> Subtopology:
    nodes = (
        TopologyNode(
            each.name,
            Kind(each.type),
            topics=each.topics,
            sink_topic=each.sink_topic,
            stores=each.stores,
            successors=each.next,
        )
        for each in row.nodes or ()
    )
    return Subtopology(row.id, tuple(nodes), row.is_global)


@lru_cache(maxsize=DRAWINGS_KEPT)
def _drawing(graph: Graph) -> Drawing:
    return layout(graph)


def svg(content: Content[TopologyPage]) -> str:
    return svg_text(_drawing(graph_in(content.data)), content.title)


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[TopologyPage], _: PageContext) -> Markup:
    data = content.data
    head = group_head(data.group, "streams", "topology")
    if not data.subtopologies:
        return joined([head, nothing("The group has no topology until its first member joins.")])
    graph = graph_in(data)
    return joined([head, _head(data), _picture(data, graph, content.title), _subtopologies(data), _text(data, graph)])


def _head(data: TopologyPage) -> Markup:
    told = facts(
        {
            "epoch of the topology": offset(data.epoch),
            "subtopologies": len(data.subtopologies),
            "tasks": sum(each.tasks for each in data.subtopologies),
        }
    )
    why = data.why_no_processors
    return joined([told, element("p", f"The processors are not drawn: {why}.", class_="note") if why else NOTHING])


def _picture(data: TopologyPage, graph: Graph, title: str) -> Markup:
    picture = element(
        "div", svg_part(_drawing(graph), title), class_="scroll picture", role="region", aria_label=title, tabindex="0"
    )
    path = with_query(f"{href('groups', data.group, 'topology')}.svg", subtopology=data.shown)
    return section("The drawing", picture, element("p", element("a", "As an SVG file", href=path), ".", class_="files"))


def _subtopologies(data: TopologyPage) -> Markup:
    chips, legend = task_chips(data.marks, data.members)
    columns = (Column("subtopology"), Column("tasks by member"), Column("reads"), Column("writes"))
    rows = (
        (
            _name(data, each),
            chips.get(each.id),
            long_list(list(map(topic_link, each.reads)), "topics"),
            long_list(list(map(topic_link, _written(each))), "topics"),
            long_list(list(map(topic_link, each.changelogs)), "topics"),
        )
        for each in data.subtopologies
    )
    return section("Subtopologies", legend, table("Subtopologies", (*columns, Column("state in")), rows))


def _written(row: SubtopologyRow) -> list[str]:
    sinks = (each.sink_topic for each in row.nodes or () if each.sink_topic is not None)
    return sorted({*row.writes, *sinks})


def _name(data: TopologyPage, row: SubtopologyRow) -> Markup | str:
    text = f"global store {row.id}" if row.is_global else row.id
    if row.nodes is None:
        return text
    return link(text, "groups", data.group, "topology", subtopology=row.id)


def _text(data: TopologyPage, graph: Graph) -> Markup:
    if data.why_no_processors is not None:
        return NOTHING
    return section("As text", element("pre", outline(graph), class_="scroll", tabindex="0"))


PAGE = Page(
    "group-topology", "/groups/{group}/topology", TopologyPage, load, render, frozenset({"subtopology"}),
    section="groups", svg=svg,
)  # fmt: skip
