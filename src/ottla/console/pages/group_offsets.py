"""The offsets of a group in each partition, and how far it is behind in records and in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from ottla.client import Client, TopicPartition
from ottla.client.group_offsets import Committed, committed, share_starts
from ottla.client.lag import Lag, lags
from ottla.console.group_lookup import ask_about_group, find_group
from ottla.console.group_members import read_by_tasks
from ottla.console.html.groups import SHARE_LAG, group_tabs, member_names
from ottla.console.html.parts import (
    Cell,
    Column,
    link,
    more,
    nothing,
    numbers,
    offset,
    table,
    topic_link,
)
from ottla.console.page import Content, Degraded, Page, PageContext, one_page
from ottla.draw.forms import ago, identity
from ottla.draw.markup import Markup, element, joined
from ottla.health.facts import Group
from ottla.health.phrases import href

TIMED_BROKERS_MAX: Final = 7
"""With more brokers than that, reading the times would take more requests than a page may make."""


class OffsetRow(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    committed: int | None
    """The start offset, in a share group."""
    start: int | None
    end: int | None
    lag: int | None
    lag_ms: int | None
    members: list[str]
    metadata: str
    note: str


class GroupOffsets(msgspec.Struct, frozen=True):
    group: str
    kind: str
    state: str
    partitions: int
    rows: list[OffsetRow]


class _Asked(NamedTuple):
    kept: dict[TopicPartition, Committed]
    lags: dict[TopicPartition, Lag]
    partitions: list[TopicPartition]
    next: str | None


async def load(context: PageContext) -> Content[GroupOffsets]:
    found = await find_group(context)
    group = found.fact
    members = _members(group)
    brokers = context.watcher.state.cluster
    is_timed = brokers is None or len(brokers.fact.brokers) <= TIMED_BROKERS_MAX

    async def ask(client: Client) -> _Asked:
        kept = await (share_starts if group.type == "share" else committed)(client, group.group)
        everything = sorted({*kept, *members}, key=_place)
        shown, rest = one_page(everything, _place, context)
        offsets = {at: kept[at].offset if at in kept else None for at in shown}
        return _Asked(kept, await lags(client, offsets, seconds=is_timed), everything, rest)

    page = (context.query.get("after", ""), context.query.get("limit", ""))
    asked, at_ms = await ask_about_group(context, ask, "offsets", *page)
    rows = [_row(at, lag, asked.kept.get(at), members.get(at, []), at_ms) for at, lag in asked.lags.items()]
    data = GroupOffsets(group.group, group.type, group.state, len(asked.partitions), rows)
    why = f"reading it from more than {TIMED_BROKERS_MAX} brokers takes too many requests; 'ottla groups offsets' does"
    missing = [] if is_timed else [Degraded("lag in seconds", why)]
    sources = [found.source, context.asked("offsets", at_ms)]
    return Content(data, f"Offsets of {group.group}", sources, missing, (f"group:{group.group}",), asked.next)


def _place(at: TopicPartition) -> str:
    """Sorts as topics and numbers do."""
    return f"{at.topic}-{at.partition:010}"


def _members(group: Group) -> dict[TopicPartition, list[str]]:
    found: dict[TopicPartition, list[str]] = {}
    for member in group.members:
        for each in member.assigned:
            for partition in each.partitions:
                found.setdefault(TopicPartition(each.topic, partition), []).append(member.member)
    for at, name in read_by_tasks(group):
        found.setdefault(at, []).append(name)
    return found


def _row(at: TopicPartition, lag: Lag, kept: Committed | None, members: list[str], now_ms: int) -> OffsetRow:
    # A share group may have finished records after its start; only the coordinator knows how many are left.
    counted = lag if kept is None or kept.lag is None else lag._replace(records=kept.lag)
    seconds = counted.seconds(now_ms)
    return OffsetRow(
        at.topic,
        at.partition,
        lag.committed,
        lag.start_offset,
        lag.end_offset,
        counted.records,
        None if seconds is None else round(1000 * seconds),
        members,
        "" if kept is None else kept.metadata,
        lag.note,
    )


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[GroupOffsets], context: PageContext) -> Markup:
    data = content.data
    head = group_tabs(data.group, data.kind, "offsets")
    if not data.rows:
        return joined([head, nothing("The group has no offsets, and its members have no partitions.")])
    note = f"{len(data.rows):,} of {data.partitions:,}" if len(data.rows) < data.partitions else ""
    names = _names(data, context)
    listing = table(
        "Offsets by partition", _columns(data.kind), (_cells(each, data, names) for each in data.rows), note
    )
    return joined([head, listing, more(content.next, href("groups", data.group, "offsets"), context.query)])


def _names(data: GroupOffsets, context: PageContext) -> Mapping[str, str]:
    seen = context.watcher.state.group(data.group)
    return {} if seen is None else member_names((each.member, each.client) for each in seen.fact.members)


def _member(member: str, names: Mapping[str, str]) -> Markup:
    name = names.get(member, member)
    return identity(member) if name == member else element("span", name, title=member)


def _columns(kind: str) -> list[Column]:
    kept = "start of the group" if kind == "share" else "committed"
    columns = [Column("topic"), *numbers("partition"), *numbers(kept, "log start", "end", are_details=True)]
    columns += [Column("lag", is_number=True, about=SHARE_LAG if kind == "share" else "records up to the end")]
    columns += [Column("behind", is_number=True, about="age of the first unprocessed record", is_detail=True)]
    columns.append(Column("member"))
    columns += [Column("in flight" if kind == "share" else "metadata", is_optional=kind != "share", is_detail=True)]
    return [*columns, Column("note", is_optional=True)]


def _cells(row: OffsetRow, data: GroupOffsets, names: Mapping[str, str]) -> list[Cell]:
    window = link("window", "groups", data.group, "window", row.topic, row.partition)
    return [
        topic_link(row.topic),
        row.partition,
        offset(row.committed),
        offset(row.start),
        offset(row.end),
        row.lag,
        ago(row.lag_ms),
        joined((_member(each, names) for each in row.members), ", ") or None,
        window if data.kind == "share" else row.metadata or " ",
        row.note or " ",
    ]


PAGE = Page(
    "group-offsets", "/groups/{group}/offsets", GroupOffsets, load, render, frozenset({"after", "limit"}),
    section="groups",
)  # fmt: skip
