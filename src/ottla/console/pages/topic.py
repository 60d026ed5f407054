"""One topic: its partitions, its settings with their origin, the groups that read it, and what is wrong with it."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.client import Client, TopicPartition
from ottla.client.configs import Entries, Resource, ResourceType, describe
from ottla.client.topics import PartitionDescription, TopicDescription
from ottla.console.addresses import href
from ottla.console.described import described_topic, known_topic
from ottla.console.html.configs import Config, config_tables, configs_of
from ottla.console.html.findings import finding_cards
from ottla.console.html.parts import (
    Column,
    badge,
    byte_size,
    facts,
    group_link,
    link,
    more,
    node_link,
    nothing,
    numbers,
    offset,
    section,
    table,
)
from ottla.console.html.topics import topic_tabs
from ottla.console.measures import Measures, measure
from ottla.console.page import Content, Page, PageContext, one_page
from ottla.console.page_parts import load_part
from ottla.console.readers import Reader, readers_by_topic
from ottla.draw.forms import UNKNOWN, identity
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding
from ottla.wire import uuid_text

NO_ID: Final = bytes(16)


class PartitionRow(msgspec.Struct, frozen=True):
    p: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    """Replicas that may become leaders although they are not in sync."""
    offline: tuple[int, ...]
    start: int | None
    end: int | None
    stable_end: int | None
    """Behind it is an open transaction, which hides what follows from readers of committed records."""
    size_bytes: int | None


class TopicPage(msgspec.Struct, frozen=True):
    name: str
    id: str | None
    internal: bool
    partition_count: int
    partitions: list[PartitionRow]
    configs: list[Config] | None
    readers: list[Reader]
    findings: list[Finding]


async def load(context: PageContext) -> Content[TopicPage]:
    asked = await described_topic(context)
    topic = known_topic(asked)
    shown, after = one_page(list(topic.partitions), _place, context)
    measures = await measure(context, _leaders(topic, shown))

    async def settings(client: Client) -> Entries:
        return await describe(client, Resource(ResourceType.TOPIC, topic.name), synonyms=True, documentation=True)

    right = f'DESCRIBE_CONFIGS on Topic "{topic.name}"'
    configs = await load_part(context, "configs", ("configs of a topic", topic.name), settings, needs=right)
    data = TopicPage(
        name=topic.name,
        id=None if topic.topic_id == NO_ID else uuid_text(topic.topic_id),
        internal=topic.is_internal,
        partition_count=len(topic.partitions),
        partitions=[_row(topic.name, each, measures) for each in shown],
        configs=None if configs.value is None else configs_of(configs.value.values()),
        readers=readers_by_topic(context.watcher.state).get(topic.name, []),
        findings=[each for each in context.watcher.state.findings if each.is_open and _is_about(each, topic.name)],
    )
    return Content(
        data,
        topic.name,
        [
            *asked.sources,
            *measures.sources,
            *configs.sources,
            *context.sources("lag", "share_offsets"),
        ],
        [*asked.degraded, *measures.degraded, *configs.degraded],
        live=(f"topic:{topic.name}", "finding", "lag", "share_offsets"),
        next=after,
    )


def _place(partition: PartitionDescription) -> str:
    return f"{partition.partition:010}"


def _leaders(topic: TopicDescription, partitions: list[PartitionDescription]) -> dict[TopicPartition, int]:
    return {TopicPartition(topic.name, each.partition): each.leader for each in partitions if each.leader >= 0}


def _row(topic: str, each: PartitionDescription, measures: Measures) -> PartitionRow:
    at = TopicPartition(topic, each.partition)
    return PartitionRow(
        p=each.partition,
        leader=each.leader if each.leader >= 0 else None,
        leader_epoch=each.leader_epoch if each.leader_epoch >= 0 else None,
        replicas=tuple(each.replicas),
        isr=tuple(each.isr),
        elr=tuple(each.elr),
        offline=tuple(each.offline_replicas),
        start=measures.starts.get(at),
        end=measures.ends.get(at),
        stable_end=measures.stable_ends.get(at),
        size_bytes=measures.sizes.get(at),
    )


def _is_about(finding: Finding, topic: str) -> bool:
    subject = finding.subject
    return subject.topic == topic or (subject.kind == "topic" and subject.name == topic)


# --- the page ---------------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    Column("partition", is_named=True),
    *numbers("leader"),
    *numbers("epoch", are_details=True),
    Column("replicas", about="the preferred leader first"),
    Column("in sync"),
    Column("eligible", about="eligible leader replicas, not in sync (ELR)", is_optional=True, is_detail=True),
    *numbers("start", are_details=True),
    *numbers("end"),
    Column("stable", is_number=True, about="last stable offset: the start of an open transaction", is_detail=True),
    Column("size", is_number=True, about="on the disk of the leader", is_detail=True),
)
READER_COLUMNS: Final = (Column("group"), Column("kind"), Column("lag", is_number=True))


def render(content: Content[TopicPage], context: PageContext) -> Markup:
    data = content.data
    return joined(
        [
            topic_tabs(data.name, "topic"),
            _facts(data),
            section("Findings", finding_cards(data.findings, context.now_ms)) if data.findings else NOTHING,
            _partitions(content, context),
            _readers(data),
            _settings(content),
        ]
    )


def _facts(data: TopicPage) -> Markup:
    known = facts(
        {
            "id": UNKNOWN if data.id is None else identity(data.id),
            "partitions": data.partition_count,
            "replicas": max((len(each.replicas) for each in data.partitions), default=None),
        }
    )
    return joined([element("p", badge("internal")) if data.internal else NOTHING, known])


def _partitions(content: Content[TopicPage], context: PageContext) -> Markup:
    data = content.data
    rows = [_cells(data.name, each) for each in data.partitions]
    rest = more(content.next, href("topics", data.name), context.query)
    return section("Partitions", table("Partitions", COLUMNS, rows), rest)


def _cells(topic: str, row: PartitionRow) -> tuple[Markup | None, ...]:
    return (
        link(str(row.p), "topics", topic, "records", partition=row.p),
        badge("▲ none", "light critical") if row.leader is None else node_link(row.leader),
        offset(row.leader_epoch),
        _nodes(row.replicas, row.offline),
        _in_sync(row),
        _nodes(row.elr) if row.elr else None,
        offset(row.start),
        offset(row.end),
        _stable(row),
        byte_size(row.size_bytes),
    )


def _nodes(ids: tuple[int, ...], offline: tuple[int, ...] = ()) -> Markup:
    shown = [joined([node_link(each), " (offline)" if each in offline else ""]) for each in ids]
    return joined(shown, ", ")


def _in_sync(row: PartitionRow) -> Markup:
    missing = [each for each in row.replicas if each not in row.isr]
    if not missing:
        return _nodes(row.isr)
    told = badge(f"● without {', '.join(map(str, missing))}", "light warning")
    return joined([_nodes(row.isr), " ", told])


def _stable(row: PartitionRow) -> Markup:
    if row.stable_end is None or row.end is None or row.stable_end >= row.end:
        return offset(row.stable_end)
    return joined([offset(row.stable_end), " ", badge("open transaction", "light warning")])


def _readers(data: TopicPage) -> Markup:
    if not data.readers:
        return section("Groups that read it", nothing("No group with committed offsets was observed."))
    rows = [(group_link(each.group), each.kind, offset(each.lag)) for each in data.readers]
    return section("Groups that read it", table("Groups that read it", READER_COLUMNS, rows))


def _settings(content: Content[TopicPage]) -> Markup:
    configs = content.data.configs
    if configs is None:
        why = next((each.why for each in content.degraded if each.what == "configs"), "unknown")
        return section("Configs", nothing(f"They cannot be shown: {why}"))
    return section("Configs", config_tables(configs, "this topic"))


PAGE = Page("topic", "/topics/{topic}", TopicPage, load, render, frozenset({"after", "limit"}), section="topics")
