"""The topology of a streams group as a drawing and as text, with the tasks of each subtopology."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from ottla.client.streams import Described, topology_description
from ottla.console.group_lookup import ask_about_group, find_group_of
from ottla.console.group_members import TaskMark, task_marks
from ottla.console.html.groups import group_tabs, long_list, member_names
from ottla.console.html.navigation import Switch, switches, walked
from ottla.console.html.parts import Column, facts, nothing, offset, section, table, topic_link, with_query
from ottla.console.html.task_matrix import task_chips
from ottla.console.page import BadQueryError, Content, Degraded, Page, PageContext
from ottla.console.task_colours import WAYS, TaskColours, by_lag, by_member, by_process
from ottla.draw.described import topology_of
from ottla.draw.graph import Graph
from ottla.draw.layout import Drawing, layout
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.draw.outline import outline
from ottla.draw.short_names import with_short_names
from ottla.draw.svg import Segment, View, svg_part, svg_text
from ottla.draw.topology import (
    Kind,
    Subtopology,
    SubtopologyTopics,
    Topology,
    TopologyNode,
    graph_of,
    graph_of_topics,
    part_id,
    without_stores,
)
from ottla.health.lag_history import lag_of
from ottla.health.phrases import href, plural
from ottla.observe.cluster_state import ClusterState
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as DescribedGroup

FOLDED_ABOVE: Final = 60
"""The subtopologies of a topology with more processors are folded at first."""
NODES_MAX: Final = 400
"""Of a topology with more processors, one subtopology is open at a time."""
DRAWINGS_KEPT: Final = 32
ZOOMS: Final = (25, 50, 75, 100, 150, 200)
FIT: Final = "fit"
ALL, NONE = "all", "none"
NAMES: Final = ("short", "full")


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
    folded: list[str]
    """The subtopologies that are drawn as one box each."""
    why_no_processors: str | None
    """Why the drawing has no processors."""
    marks: list[TaskMark]
    """Who has which task, or is to have it."""
    members: list[tuple[str, str]]
    """Ids and names."""
    processes: dict[str, str | None]
    """Member -> the process that it is a thread of."""
    lags: dict[str, int]
    """Task -> how many records it is behind, where that is known."""

    @property
    def processors(self) -> int:
        return sum(len(each.nodes or ()) for each in self.subtopologies)


class Options(NamedTuple):
    """How the reader wants the drawing."""

    zoom: int | None
    """In percent; None fits it into its place."""
    has_short_names: bool
    has_stores: bool
    colour: str


def options_of(context: PageContext) -> Options:
    zoom = context.choice("zoom", (FIT, *map(str, ZOOMS)), "100")
    return Options(
        None if zoom == FIT else int(zoom),
        context.choice("names", NAMES, "short") == "short",
        context.choice("stores", ("0", "1"), "1") == "1",
        context.choice("colour", WAYS, "member"),
    )


async def load(context: PageContext) -> Content[TopologyPage]:
    options = options_of(context)
    group = (await find_group_of(context, "streams", "a topology")).fact
    name = group.group
    described, at_ms = await ask_about_group(context, lambda client: topology_description(client, name), "topology")
    marks = task_marks(group)
    rows = _rows(described, marks)
    shown = context.choice("subtopology", [each.id for each in rows]) or None
    if shown is not None and described.description is None:
        raise BadQueryError("a single subtopology can be drawn only if its processors are known")
    why = described.why_not or None
    data = TopologyPage(
        group=name,
        epoch=group.topology_epoch,
        subtopologies=rows,
        shown=shown,
        folded=[] if why or shown else folded_of(rows, context.query.get("open", "")),
        why_no_processors=why,
        marks=marks,
        members=list(member_names((each.member, each.client) for each in group.members).items()),
        processes={each.member: each.process for each in group.members},
        lags=_lags(rows, marks, context.watcher.state, name),
    )
    # A large drawing takes a second; others may look at other pages meanwhile.
    await asyncio.to_thread(_drawing, graph_in(data, options))
    missing = [] if why is None else [Degraded("processors", f"are unknown: {why}")]
    return Content(data, f"Topology of {name}", [context.asked("topology", at_ms)], missing, live=(f"group:{name}",))


def folded_of(rows: Sequence[SubtopologyRow], wanted: str) -> list[str]:
    """Which subtopologies are folded. `wanted` are those to open: all, none, or some ids with commas between."""
    known = [each.id for each in rows]
    count = sum(len(each.nodes or ()) for each in rows)
    if count > NODES_MAX or wanted == NONE or (not wanted and count > FOLDED_ABOVE):
        return known
    if wanted in ("", ALL):
        return []
    opened = wanted.split(",")
    for each in opened:
        if each not in known:
            raise BadQueryError(f"open={wanted}: there is no subtopology {each!r}; there are {', '.join(known)}")
    return [each for each in known if each not in opened]


def _lags(rows: Iterable[SubtopologyRow], marks: Iterable[TaskMark], state: ClusterState, group: str) -> dict[str, int]:
    """A task is behind by what is left of the partitions that it reads."""
    reads = {each.id: each.reads for each in rows}
    behind = {at: lag for at, seen in state.lags(group).items() if (lag := lag_of(seen.fact)) is not None}
    found = {}
    for task in {each.task for each in marks}:
        part, _, number = task.rpartition("_")
        known = [behind[topic, int(number)] for topic in reads.get(part, ()) if (topic, int(number)) in behind]
        if known:
            found[task] = sum(known)
    return found


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


def graph_in(data: TopologyPage, options: Options) -> Graph:
    """The graph that is drawn: processors if they are known, else subtopologies with their topics."""
    rows = _drawn(data)
    if data.why_no_processors is not None:
        graph = graph_of_topics(map(_topics_of, rows))
    else:
        graph = graph_of(Topology(tuple(map(_subtopology, rows))), frozenset(data.folded))
        graph = with_short_names(graph) if options.has_short_names else graph
    graph = _titled(graph, {part_id(number): _title(each, data) for number, each in enumerate(rows)})
    return graph if options.has_stores else without_stores(graph)


def _drawn(data: TopologyPage) -> list[SubtopologyRow]:
    return [each for each in data.subtopologies if data.shown in (None, each.id)]


def _title(row: SubtopologyRow, data: TopologyPage) -> str:
    processors = [plural(len(row.nodes), "processor")] if row.nodes is not None and row.id in data.folded else []
    told = ", ".join([*processors, *([] if row.is_global else [plural(row.tasks, "task")])])
    return f"{_words(row)}: {told}" if told else _words(row)


def _words(row: SubtopologyRow) -> str:
    return f"{'global store' if row.is_global else 'subtopology'} {row.id}"


def _titled(graph: Graph, titles: Mapping[str, str]) -> Graph:
    nodes = (each._replace(name=titles.get(each.id, each.name)) for each in graph.nodes)
    clusters = (each._replace(title=titles[each.id]) for each in graph.clusters)
    return graph._replace(nodes=tuple(nodes), clusters=tuple(clusters))


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


def svg(content: Content[TopologyPage], context: PageContext) -> str:
    return svg_text(_drawing(graph_in(content.data, options_of(context))), content.title)


# --- its colours ------------------------------------------------------------------------------------------------------


def _colours(data: TopologyPage, options: Options) -> TaskColours:
    match options.colour:
        case "process":
            return by_process(data.processes)
        case "lag":
            return by_lag(data.lags)
        case _:
            return by_member(data.members)


def bars_of(data: TopologyPage, options: Options) -> dict[str, list[Segment]]:
    """Who has the tasks of each subtopology or, by lag, each task with its own colour."""
    colours = _colours(data, options)
    running = [each for each in data.marks if each.role == "active" and each.standing != "waiting"]
    found = {}
    for number, row in enumerate(_drawn(data)):
        own = [each for each in running if each.task.rpartition("_")[0] == row.id]
        if options.colour == "lag":
            tones = [(each, colours.of(each)) for each in own]
            segments = [Segment(1, tone.letter, tone.hue, f"{each.task}: {tone.words}") for each, tone in tones]
        else:
            counts = sorted(Counter(map(colours.of, own)).items())
            told = f"of {plural(len(own), 'task')}"
            segments = [
                Segment(count, tone.letter, tone.hue, f"{tone.letter} {tone.words}: {count} {told}")
                for tone, count in counts
            ]
        found[part_id(number)] = segments
    return found


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[TopologyPage], context: PageContext) -> Markup:
    data, options = content.data, options_of(context)
    head = group_tabs(data.group, "streams", "topology")
    if not data.subtopologies:
        return joined([head, nothing("The group has no topology until its first member joins.")])
    picture = _picture(content, options, context.query)
    return joined([head, _head(data), picture, _subtopologies(data, options, context.query), _text(data)])


def _head(data: TopologyPage) -> Markup:
    told = facts(
        {
            "epoch of the topology": offset(data.epoch),
            "subtopologies": len(data.subtopologies),
            "processors": data.processors or None,
            "tasks": sum(each.tasks for each in data.subtopologies),
        }
    )
    why = data.why_no_processors
    return joined([told, element("p", f"Processors are not drawn: {why}.", class_="note") if why else NOTHING])


def _picture(content: Content[TopologyPage], options: Options, query: Mapping[str, str]) -> Markup:
    data, title = content.data, content.title
    links = {
        part_id(number): address for number, row in enumerate(_drawn(data)) if (address := _turn(data, row, query))
    }
    view = View(None if options.zoom is None else options.zoom / 100, links, bars_of(data, options))
    drawn = svg_part(_drawing(graph_in(data, options)), title, view=view)
    picture = element("div", drawn, class_="scroll picture", role="region", aria_label=title, tabindex="0")
    walk = walked(picture, "Arrow keys go from box to box, Enter opens and folds subtopologies.")
    file = element("a", "As an SVG file", href=with_query(f"{_path(data)}.svg", **_kept(query)))
    return section("Drawing", _tools(data, options, query), walk, element("p", file, class_="files"))


def _path(data: TopologyPage) -> str:
    return href("groups", data.group, "topology")


def _kept(query: Mapping[str, str], **changes: str) -> dict[str, str]:
    return {**query, **changes}


def _turn(data: TopologyPage, row: SubtopologyRow, query: Mapping[str, str]) -> str | None:
    """The address where this subtopology is open, if it is folded, or folded, if it is open."""
    if data.why_no_processors is not None:
        return None
    if data.shown is not None:
        return with_query(_path(data), **_kept(query, subtopology=""))
    if data.processors > NODES_MAX:
        return with_query(_path(data), **_kept(query, subtopology=row.id))
    opened = [each.id for each in data.subtopologies if (each.id in data.folded) == (each.id == row.id)]
    return with_query(_path(data), **_kept(query, open=_as_text(opened, data)))


def _as_text(opened: Collection[str], data: TopologyPage) -> str:
    if not opened:
        return NONE
    return ALL if len(opened) == len(data.subtopologies) else ",".join(opened)


def _tools(data: TopologyPage, options: Options, query: Mapping[str, str]) -> Markup:
    def to(text: str, is_on: bool, **changes: str) -> Switch:
        return Switch(text, with_query(_path(data), **_kept(query, **changes)), is_on)

    names = [to(each, options.has_short_names == (each == "short"), names=each) for each in NAMES]
    stores = [to("shown", options.has_stores, stores=""), to("hidden", not options.has_stores, stores="0")]
    colours = [to(each, options.colour == each, colour=each) for each in WAYS]
    tools = [switches("Zoom", _zooms(options, to)), switches("Stores", stores), switches("Colour by", colours)]
    if data.why_no_processors is None:
        tools.insert(1, switches("Names", names))
    if data.why_no_processors is None and data.shown is None and data.processors <= NODES_MAX:
        both = [
            to("open all", not data.folded, open=ALL),
            to("fold all", len(data.folded) == len(_drawn(data)), open=NONE),
        ]
        tools.append(switches("Subtopologies", both))
    return element("div", *tools, class_="tools")


def _zooms(options: Options, to: Callable[..., Switch]) -> list[Switch]:
    """A step smaller and larger, the size as it is, and all of it at once."""
    now = options.zoom or 100
    smaller = max((each for each in ZOOMS if each < now), default=None)
    larger = min((each for each in ZOOMS if each > now), default=None)
    steps = [to(sign, False, zoom=str(size)) for sign, size in (("–", smaller), ("+", larger)) if size is not None]
    return [*steps, to(f"{now} %", options.zoom is not None, zoom=str(now)), to(FIT, options.zoom is None, zoom=FIT)]


def _subtopologies(data: TopologyPage, options: Options, query: Mapping[str, str]) -> Markup:
    chips, legend = task_chips(data.marks, data.members, _colours(data, options))
    columns = (Column("subtopology"), Column(f"tasks by {options.colour}"), Column("reads"), Column("writes"))
    rows = (
        (
            _name(data, each, query),
            chips.get(each.id),
            long_list(list(map(topic_link, each.reads)), "topics"),
            long_list(list(map(topic_link, _written(each))), "topics"),
            long_list(list(map(topic_link, each.changelogs)), "topics"),
        )
        for each in data.subtopologies
    )
    return section("Subtopologies", legend, table("Subtopologies", (*columns, Column("changelogs")), rows))


def _written(row: SubtopologyRow) -> list[str]:
    sinks = (each.sink_topic for each in row.nodes or () if each.sink_topic is not None)
    return sorted({*row.writes, *sinks})


def _name(data: TopologyPage, row: SubtopologyRow, query: Mapping[str, str]) -> Markup | str:
    text = _words(row) if row.is_global else row.id
    address = _turn(data, row, query)
    if row.nodes is None or address is None:
        return text
    alone = with_query(_path(data), **_kept(query, subtopology=row.id))
    is_open = row.id not in data.folded and data.shown in (None, row.id)
    turn = element("a", "fold" if is_open else "open", href=address, data_stay=True)
    return joined([element("a", text, href=alone, title=f"{_words(row)} alone"), " ", element("small", turn)])


def _text(data: TopologyPage) -> Markup:
    """All of it with whole names, unless it is too long."""
    if data.why_no_processors is not None or (data.processors > NODES_MAX and data.shown is None):
        return NOTHING
    graph = graph_in(msgspec.structs.replace(data, folded=[]), Options(100, False, True, "member"))
    text = element("pre", outline(graph), class_="scroll", tabindex="0")
    if data.processors > FOLDED_ABOVE and data.shown is None:
        text = element("details", element("summary", plural(data.processors, "processor")), text, class_="folded wide")
    return section("As text", text)


PAGE = Page(
    "group-topology", "/groups/{group}/topology", TopologyPage, load, render,
    frozenset({"subtopology", "open", "zoom", "names", "stores", "colour"}), section="groups", svg=svg,
)  # fmt: skip
