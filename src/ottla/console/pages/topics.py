"""All topics. What is asked for is asked of the topics that are shown; everything else the observer has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ottla.client import TopicPartition
from ottla.console.end_offsets import EndOffsets, Rate
from ottla.console.html.findings import finding_line, of_subject
from ottla.console.html.navigation import Choice, Text, filter_form
from ottla.console.html.parts import (
    Column,
    absent,
    badge,
    byte_size,
    group_link,
    more,
    nothing,
    numbers,
    table,
    topic_link,
)
from ottla.console.measures import ENDS, REQUESTS_MAX, SIZES, STARTS, Measures, leaders_in, measure
from ottla.console.page import Content, Degraded, Page, PageContext, one_page
from ottla.console.readers import Reader, readers_by_topic
from ottla.draw.forms import short_number
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding
from ottla.health.facts import Partition, Topic
from ottla.health.phrases import duration, number

READERS_NAMED_MAX: Final = 3
MEASURED_MAX: Final = 20_000
"""Of so many partitions ends are asked for, to sort topics by their rate."""
RELOAD_S: Final = 5
STALE_MS: Final = 15_000
_DIGITS: Final = 15
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
    rate: Rate | None
    """None until its ends were asked for twice, some seconds apart."""
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
    sort = context.choice("sort", SORTS, "name")
    ends = await _all_ends(context, matching) if sort == "rate" else Measures()
    place = _place(sort, readers, context.watcher.ends)
    shown, after = one_page(sorted(matching, key=place), place, context)
    measures = await _measured(context, shown, ends)
    findings = of_subject(context.watcher.state.findings, "topic")
    rates = context.watcher.ends
    rows = [
        _row(each, measures, rates.rate(each.topic), readers.get(each.topic, []), findings.get(each.topic, []))
        for each in shown
    ]
    return Content(
        Topics(rows, len(matching), len(known), sum(each.internal for each in known.values())),
        "Topics",
        [*context.sources("topic", "lag", "share_offsets"), *measures.sources],
        [*context.hidden("topic"), *measures.degraded],
        live=("topic", "finding", "lag", "share_offsets"),
        next=after,
        reload_s=RELOAD_S,
    )


async def _all_ends(context: PageContext, topics: list[Topic]) -> Measures:
    """The ends of all topics that match, since those that are shown are chosen by their rate."""
    leaders = _leaders(topics)
    some = dict(list(leaders.items())[:MEASURED_MAX])
    found = await measure(context, some, (ENDS,))
    if len(some) == len(leaders):
        return found
    why = f"only the first {number(MEASURED_MAX)} partitions are asked for; narrow the list"
    return found._replace(degraded=(*found.degraded, Degraded("rates", why)))


async def _measured(context: PageContext, shown: list[Topic], ends: Measures) -> Measures:
    """What the page shows of its topics; `ends` are known if that was asked for already."""
    leaders = _leaders(shown)
    if not ends.sources:
        found = await measure(context, leaders, (ENDS, STARTS, SIZES))
        return found._replace(degraded=(*ends.degraded, *found.degraded))
    requests_max = REQUESTS_MAX - leaders_in(leaders)
    found = await measure(context, leaders, (STARTS, SIZES), requests_max)
    sources, degraded = (*ends.sources, *found.sources), (*ends.degraded, *found.degraded)
    return found._replace(ends=ends.ends, sources=sources, degraded=degraded)


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


def _place(sort: str, readers: Mapping[str, list[Reader]], ends: EndOffsets) -> Callable[[Topic], str]:
    """Where a topic stands in the list, as a text, which is also how the next page is found. The most come first."""
    counts: Mapping[str, Callable[[Topic], int]] = {
        "partitions": lambda topic: len(topic.partitions),
        "readers": lambda topic: len(readers.get(topic.topic, ())),
        "unhealthy": lambda topic: sum(map(is_unhealthy, topic.partitions)),
        "rate": lambda topic: _in_thousandths(ends.rate(topic.topic)),
    }
    if sort not in counts:
        return lambda topic: topic.topic
    return lambda topic: f"{10**_DIGITS - counts[sort](topic):0{_DIGITS + 1}} {topic.topic}"


def _in_thousandths(rate: Rate | None) -> int:
    """What is not known comes after what does not grow."""
    return -1 if rate is None else round(1000 * rate.per_s)


def is_unhealthy(partition: Partition) -> bool:
    return partition.leader < 0 or len(partition.isr) < len(partition.replicas) or bool(partition.offline)


def _leaders(topics: list[Topic]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, each.partition): each.leader
        for topic in topics
        for each in topic.partitions
        if each.leader >= 0
    }


def _row(
    topic: Topic, measures: Measures, rate: Rate | None, readers: list[Reader], findings: list[Finding]
) -> TopicRow:
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
        rate=rate,
        readers=readers,
        findings=sorted({each.rule for each in findings}),
    )


# --- the page ---------------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    Column("topic"),
    *numbers("partitions"),
    *numbers("replicas", are_details=True),
    Column("health", is_short=True),
    Column("records", is_number=True, about="end minus start offset; compaction and transactions leave gaps"),
    Column("size", is_number=True, about="on the disks of the leaders", is_detail=True),
    Column(
        "rate", is_number=True, about="records a second, between two looks at the end of its partitions", is_detail=True
    ),
    Column("readers", is_detail=True),
    Column("findings"),
)


SORTS: Final = {
    "name": "by name",
    "partitions": "most partitions",
    "rate": "fastest",
    "readers": "most readers",
    "unhealthy": "least healthy",
}
FIELDS = (
    Text("q", "Name contains"),
    Choice("internal", "Kafka's own", {"": "without internal topics", "1": "with internal topics"}),
    Choice("unhealthy", "Health", {"": "all", "1": "only unhealthy"}),
    Choice("sort", "Order", SORTS),
)


def render(content: Content[Topics], context: PageContext) -> Markup:
    data = content.data
    findings = of_subject(context.watcher.state.findings, "topic")
    if not data.rows:
        return joined([_form(context), _nothing(data, context)])
    rows = [_cells(each, findings.get(each.name, []), context.now_ms) for each in data.rows]
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


def _cells(row: TopicRow, findings: list[Finding], now_ms: int) -> tuple[Markup | int | None, ...]:
    name = joined([topic_link(row.name), " ", badge("internal")]) if row.internal else topic_link(row.name)
    return (
        name,
        row.partitions,
        row.replication,
        _troubles(row),
        row.records,
        byte_size(row.size_bytes),
        _rate(row.rate, now_ms),
        _readers(row.readers),
        finding_line(findings),
    )


def _rate(rate: Rate | None, now_ms: int) -> Markup:
    if rate is None:
        return element("span", "–", class_="unknown", title=f"its ends were not seen twice yet: wait {RELOAD_S} s")
    age_ms = now_ms - rate.at_ms
    late = f", {duration(age_ms)} ago" if age_ms > STALE_MS else ""
    return joined([f"{short_number(rate.per_s)}/s ", element("small", f"over {duration(rate.over_ms)}{late}")])


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
    return joined(named, ", ") if named else absent("no group with committed offsets")


PAGE = Page(
    "topics",
    "/topics",
    Topics,
    load,
    render,
    frozenset({"q", "internal", "unhealthy", "sort", "after", "limit"}),
    section="topics",
)
