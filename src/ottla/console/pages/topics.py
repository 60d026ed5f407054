"""All topics. What is asked for is asked of the topics that are shown; everything else the observer has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ottla.client import TopicPartition
from ottla.console.html.findings import finding_line, of_subject
from ottla.console.html.navigation import Choice, Text, filter_form
from ottla.console.html.parts import Column, badge, byte_size, group_link, more, nothing, numbers, table, topic_link
from ottla.console.measures import Measures, measure
from ottla.console.page import Content, Page, PageContext, one_page
from ottla.console.readers import Reader, readers_by_topic
from ottla.draw.forms import UNKNOWN
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding
from ottla.health.facts import Partition, Topic
from ottla.health.phrases import number

SORTS: Final = ("name", "partitions", "readers", "unhealthy")
READERS_NAMED_MAX: Final = 3
QUESTIONS: Final = 3
"""Of those in `measures`: end offsets, start offsets and sizes."""
_LARGEST: Final = 10**9
EXAMPLE: Final = "ottla topics create orders --partitions 3"


class TopicRow(msgspec.Struct, frozen=True):
    name: str
    id: str | None
    internal: bool
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    records: int | None
    """End minus start offsets: no fewer than there are, since compaction and transactions leave gaps."""
    size_bytes: int | None
    """As the leaders keep them."""
    readers: list[Reader]
    findings: list[str]
    """The rules of the open findings."""


class Topics(msgspec.Struct, frozen=True):
    rows: list[TopicRow]
    matching: int
    """How many topics match, shown or not."""
    known: int
    internal: int
    """How many of the known ones are internal."""


async def load(context: PageContext) -> Content[Topics]:
    known = {name: seen.fact for name, seen in context.watcher.state.topics.items()}
    readers = readers_by_topic(context.watcher.state)
    matching = _chosen(known, context)
    place = _place(context.choice("sort", SORTS, "name"), readers)
    shown, after = one_page(sorted(matching, key=place), place, context)
    measures = await measure(context, _leaders(shown), QUESTIONS)
    findings = of_subject(context.watcher.state.findings, "topic")
    rows = [_row(each, measures, readers.get(each.topic, []), findings.get(each.topic, [])) for each in shown]
    return Content(
        Topics(rows, len(matching), len(known), sum(each.internal for each in known.values())),
        "Topics",
        [*context.sources("topic", "lag", "share_offsets"), *measures.sources],
        [*context.hidden("topic"), *measures.degraded],
        live=("topic", "finding", "lag", "share_offsets"),
        next=after,
    )


def _chosen(known: Mapping[str, Topic], context: PageContext) -> list[Topic]:
    wanted = context.query.get("q", "").lower()
    with_internal = context.choice("internal", ("0", "1")) == "1"
    only_unhealthy = context.choice("unhealthy", ("0", "1")) == "1"
    return [
        each
        for name, each in known.items()
        if wanted in name.lower()
        and (with_internal or not each.internal)
        and (not only_unhealthy or any(map(is_unhealthy, each.partitions)))
    ]


def _place(sort: str, readers: Mapping[str, list[Reader]]) -> Callable[[Topic], str]:
    """Where a topic stands in the list, as a text, which is also how the next page is found."""
    counts: Mapping[str, Callable[[Topic], int]] = {
        "partitions": lambda topic: len(topic.partitions),
        "readers": lambda topic: len(readers.get(topic.topic, ())),
        "unhealthy": lambda topic: sum(map(is_unhealthy, topic.partitions)),
    }
    if sort not in counts:
        return lambda topic: topic.topic
    return lambda topic: f"{_LARGEST - counts[sort](topic)} {topic.topic}"


def is_unhealthy(partition: Partition) -> bool:
    return partition.leader < 0 or len(partition.isr) < len(partition.replicas) or bool(partition.offline)


def _leaders(topics: list[Topic]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, each.partition): each.leader
        for topic in topics
        for each in topic.partitions
        if each.leader >= 0
    }


def _row(topic: Topic, measures: Measures, readers: list[Reader], findings: list[Finding]) -> TopicRow:
    places = [TopicPartition(topic.topic, each.partition) for each in topic.partitions]
    return TopicRow(
        name=topic.topic,
        id=topic.id,
        internal=topic.internal,
        partitions=len(topic.partitions),
        replication=max((len(each.replicas) for each in topic.partitions), default=0),
        offline=sum(each.leader < 0 for each in topic.partitions),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        records=measures.records(places),
        size_bytes=measures.size(places),
        readers=readers,
        findings=sorted({each.rule for each in findings}),
    )


# --- the page ---------------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    Column("topic"),
    *numbers("partitions", "copies"),
    Column("unhealthy"),
    Column("records", is_number=True, about="end minus start offset; compaction and transactions leave gaps"),
    Column("size", is_number=True, about="on the disks of the leaders"),
    Column("readers"),
    Column("findings"),
)


FIELDS = (
    Text("q", "Name contains"),
    Choice("internal", "Kafka's own", {"": "without internal topics", "1": "with internal topics"}),
    Choice("unhealthy", "Health", {"": "all", "1": "only unhealthy"}),
    Choice(
        "sort",
        "Order",
        {"name": "by name", "partitions": "most partitions", "readers": "most readers", "unhealthy": "least healthy"},
    ),
)


def render(content: Content[Topics], context: PageContext) -> Markup:
    data = content.data
    findings = of_subject(context.watcher.state.findings, "topic")
    if not data.rows:
        return joined([_form(context), _nothing(data, context)])
    rows = [_cells(each, findings.get(each.name, [])) for each in data.rows]
    note = f"{number(len(rows))} of {number(data.matching)}"
    return joined([_form(context), table("Topics", COLUMNS, rows, note), more(content.next, "/topics", context.query)])


def _form(context: PageContext) -> Markup:
    return filter_form("/topics", FIELDS, context.query)


def _nothing(data: Topics, context: PageContext) -> Markup:
    if context.watcher.probed_ms("topic") is None and not data.known:
        return nothing("No topics observed yet.")
    if not data.matching and any(context.query.get(key) for key in ("q", "unhealthy")):
        everything = element("a", "Show all", href="/topics")
        return element("p", f"None of {number(data.known)} topics match. ", everything, ".", class_="nothing")
    if data.matching:
        return element(
            "p", "There are no more. ", element("a", "Back to the first", href="/topics"), ".", class_="nothing"
        )
    own = joined(
        [f" There are {data.internal} internal topics: ", element("a", "show them", href="/topics?internal=1"), "."]
    )
    return joined([nothing("No topics yet. Create one:", EXAMPLE), element("p", own) if data.internal else NOTHING])


def _cells(row: TopicRow, findings: list[Finding]) -> tuple[Markup | int | None, ...]:
    name = joined([topic_link(row.name), " ", badge("internal")]) if row.internal else topic_link(row.name)
    return (
        name,
        row.partitions,
        row.replication,
        _troubles(row),
        row.records,
        byte_size(row.size_bytes),
        _readers(row.readers),
        finding_line(findings),
    )


def _troubles(row: TopicRow) -> Markup:
    troubles = [
        badge(f"{sign} {count:,} {words}", f"light {tone}")
        for count, words, sign, tone in (
            (row.offline, "without a leader", "▲", "critical"),
            (row.under_replicated, "under-replicated", "●", "warning"),
        )
        if count
    ]
    return joined(troubles, " ") if troubles else element("span", "✓ healthy", class_="fine-line")


def _readers(readers: list[Reader]) -> Markup:
    named = [group_link(each.group) for each in readers[:READERS_NAMED_MAX]]
    if len(readers) > READERS_NAMED_MAX:
        named.append(element("span", f"{len(readers) - READERS_NAMED_MAX} more"))
    return joined(named, ", ") if named else UNKNOWN


PAGE = Page(
    "topics",
    "/topics",
    Topics,
    load,
    render,
    frozenset({"q", "internal", "unhealthy", "sort", "after", "limit"}),
    section="topics",
)
