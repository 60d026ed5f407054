"""One group of any kind: its epochs, its members and what they have, its lag, its configs, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ottla.client import Client
from ottla.client.configs import Resource, ResourceType, describe
from ottla.console.group_lookup import FoundGroup, LagSum, find_group, lag_sum
from ottla.console.group_members import Awaited, MemberState, TaskMark, compact, states_of, task_marks
from ottla.console.html.configs import Config, config_tables, configs_of
from ottla.console.html.findings import finding_cards
from ottla.console.html.groups import EPOCHS, SHARE_LAG, epochs, group_tabs, has_epochs, long_list, member_names
from ottla.console.html.parts import (
    Cell,
    Column,
    badge,
    facts,
    link,
    node_link,
    nothing,
    numbers,
    offset,
    section,
    since,
    sparkline,
    table,
    topic_link,
)
from ottla.console.html.task_matrix import task_matrix
from ottla.console.page import Content, Page, PageContext
from ottla.console.page_parts import Part, load_part
from ottla.draw.forms import identity, moment, number
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding
from ottla.health.facts import GroupMember, ShareOffsets, Subtopology, Tasks, TopicPartitions
from ottla.health.phrases import plural
from ottla.observe.cluster_state import Epochs

EPOCHS_SHOWN: Final = 8
STATE_TONES: Final = {"stable": "ok", "moving": "warning", "waiting": "warning", "left": "critical"}


class Member(msgspec.Struct, frozen=True):
    id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int | None
    state: str | None
    waiting_for: list[Awaited]
    subscribed: tuple[str, ...] | None
    assigned: tuple[TopicPartitions, ...]
    target: tuple[TopicPartitions, ...]
    tasks: Tasks | None
    target_tasks: Tasks | None
    process: str | None
    topology_epoch: int | None


class SharePartition(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    start: int | None
    end: int | None
    lag: int | None
    delivery_complete: int | None
    """How many offsets after the start are finished."""


class Seen(msgspec.Struct, frozen=True):
    """The epochs of a group from a time on."""

    at_ms: int
    epoch: int
    assignment_epoch: int
    members: int


class GroupPage(msgspec.Struct, frozen=True):
    id: str
    kind: str
    state: str
    protocol: str | None
    epoch: int | None
    assignment_epoch: int | None
    topology_epoch: int | None
    assignor: str | None
    coordinator: int | None
    members: list[Member]
    lag: LagSum
    partitions: list[SharePartition]
    """Of share groups."""
    tasks: list[TaskMark]
    """Of streams groups."""
    subtopologies: tuple[Subtopology, ...]
    configs: list[Config] | None
    findings: list[Finding]
    history: list[Seen]
    known_since_ms: int | None


async def load(context: PageContext) -> Content[GroupPage]:
    found = await find_group(context)
    group = found.fact
    configs = await _configs(context, group.group, group.type)
    state = context.watcher.state
    is_known = has_epochs(group.type)
    data = GroupPage(
        id=group.group,
        kind=group.type,
        state=group.state,
        protocol=group.protocol,
        epoch=group.group_epoch if is_known else None,
        assignment_epoch=group.assignment_epoch if is_known else None,
        topology_epoch=group.topology_epoch,
        assignor=group.assignor,
        coordinator=group.coordinator,
        members=[_member(*each, group.type) for each in zip(group.members, states_of(group), strict=True)],
        lag=lag_sum(state, group),
        partitions=[_share_partition(seen.fact) for _, seen in sorted(state.share_offsets(group.group).items())],
        tasks=task_marks(group) if group.type == "streams" else [],
        subtopologies=group.subtopologies or (),
        configs=configs.value,
        findings=[each for each in state.findings if (each.subject.kind, each.subject.name) == ("group", group.group)],
        history=[seen_of(each) for each in state.epochs(group.group)],
        known_since_ms=context.watcher.history_since_ms,
    )
    return _content(data, found, context, configs)


def _content(
    data: GroupPage, found: FoundGroup, context: PageContext, configs: Part[list[Config]]
) -> Content[GroupPage]:
    lag_kind = "share_offsets" if data.kind == "share" else "lag"
    return Content(
        data,
        data.id,
        [found.source, *context.sources(lag_kind), *configs.sources],
        [*configs.degraded, *context.hidden("group", lag_kind)],
        live=(f"group:{data.id}",),
    )


def seen_of(each: Epochs) -> Seen:
    return Seen(each.at_ms, each.epoch, each.assignment_epoch, each.members)


async def _configs(context: PageContext, name: str, kind: str) -> Part[list[Config]]:
    """The configs that mean something to groups of a kind; brokers tell those of all kinds."""

    async def ask(client: Client) -> list[Config]:
        entries = await describe(client, Resource(ResourceType.GROUP, name), synonyms=True, documentation=True)
        return configs_of(each for each in entries.values() if each.name.startswith(f"{kind}."))

    right = f'DESCRIBE_CONFIGS on Group "{name}"'
    return await load_part(context, "configs", ("configs of a group", name, kind), ask, needs=right)


def _member(each: GroupMember, standing: MemberState, kind: str) -> Member:
    return Member(
        id=each.member,
        instance_id=each.instance,
        client_id=each.client,
        host=each.host.removeprefix("/"),
        rack=each.rack,
        epoch=each.epoch if has_epochs(kind) else None,
        state=standing.state,
        waiting_for=standing.waiting_for,
        subscribed=each.subscribed,
        assigned=each.assigned,
        target=each.target,
        tasks=each.tasks,
        target_tasks=each.target_tasks,
        process=each.process,
        topology_epoch=each.topology_epoch,
    )


def _share_partition(fact: ShareOffsets) -> SharePartition:
    start, end, lag = fact.start, fact.high_watermark, fact.lag
    done = None if start is None or end is None or lag is None else max(0, end - start - lag)
    return SharePartition(fact.topic, fact.partition, start, end, lag, done)


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[GroupPage], context: PageContext) -> Markup:
    data = content.data
    names = member_names((each.id, each.client_id) for each in data.members)
    parts = [group_tabs(data.id, data.kind), _head(data), _findings(data, context), _members(data, names)]
    if data.kind == "streams":
        parts.append(_tasks(data, names))
    parts += [_share_partitions(data) if data.kind == "share" else _offsets(data, context), _history(data, context)]
    return joined([*parts, _settings(data)])


def _head(data: GroupPage) -> Markup:
    pairs: dict[str, Cell] = {
        "kind": data.kind,
        "state": badge(data.state, "ok" if data.state == "Stable" else ""),
        "members": len(data.members),
        "assignor": data.assignor or None,
        "coordinator": node_link(data.coordinator),
    }
    if has_epochs(data.kind):
        pairs["epoch of the group"] = offset(data.epoch)
        pairs["epoch of the assignment"] = offset(data.assignment_epoch)
    else:
        pairs["protocol"] = data.protocol or None
    if data.kind == "streams":
        pairs["epoch of the topology"] = offset(data.topology_epoch)
        pairs["processes"] = len({each.process for each in data.members if each.process})
    due = data.members and data.epoch is not None and data.epoch != data.assignment_epoch
    told = element("p", f"A new assignment is pending for epoch {data.epoch:,}.") if due else NOTHING
    return joined([facts(pairs), told])


def _findings(data: GroupPage, context: PageContext) -> Markup:
    is_open = [each for each in data.findings if each.is_open]
    over = [each for each in data.findings if not each.is_open]
    if not data.findings:
        return NOTHING
    folded = element(
        "details", element("summary", f"resolved ({len(over)})"), finding_cards(over, context.now_ms), class_="folded"
    )
    return section("Findings", finding_cards(is_open, context.now_ms), folded if over else NOTHING)


def _members(data: GroupPage, names: Mapping[str, str]) -> Markup:
    if not data.members:
        return section("Members", nothing("The group has no members."))
    what = "tasks" if data.kind == "streams" else "partitions"
    columns = [Column("member"), Column("client"), Column("host", is_detail=True)]
    columns += [Column(each, is_optional=True, is_detail=True) for each in ("instance", "rack")]
    columns += [Column("epoch", is_number=True, is_detail=True), Column("state"), Column(what)]
    has_targets = data.kind in ("consumer", "streams")
    columns += [Column("target", about=f"the {what} of its target assignment")] * has_targets
    columns += [Column("process", is_detail=True)] * (data.kind == "streams")
    rows = (list(_member_cells(each, data, names, what)) for each in data.members)
    return section("Members", table("Members", columns, rows))


def _member_cells(each: Member, data: GroupPage, names: Mapping[str, str], what: str) -> Iterator[Cell]:
    yield identity(each.id)
    yield each.client_id
    yield each.host
    yield each.instance_id
    yield each.rack
    yield offset(each.epoch)
    yield _state(each, names)
    yield long_list(compact(each.assigned, each.tasks), what)
    if data.kind in ("consumer", "streams"):
        yield long_list(compact(each.target, each.target_tasks), what)
    if data.kind == "streams":
        yield each.process and identity(each.process)


def _state(each: Member, names: Mapping[str, str]) -> Markup:
    if each.state is None:
        return offset(None)
    told = badge(each.state, STATE_TONES.get(each.state, ""))
    if not each.waiting_for:
        return told
    return joined([told, " ", long_list([awaited(one, names) for one in each.waiting_for], "awaited")])


def awaited(one: Awaited, names: Mapping[str, str]) -> str:
    """`for orders-3, still held by billing-2`."""
    holders = [names.get(each, each) for each in one.holders]
    if one.is_certain:
        return f"for {one.what}, still held by {', '.join(holders)}"
    if one.others:
        holders.append("another member" if one.others == 1 else f"one of {one.others:,} others")
    return f"for {one.what}, not yet revoked by {' or '.join(holders)}" if holders else f"for {one.what}"


def _tasks(data: GroupPage, names: Mapping[str, str]) -> Markup:
    to_topology = element("p", link("The topology with its topics", "groups", data.id, "topology"))
    if not data.tasks:
        return section("Tasks by member", nothing("No member has tasks."), to_topology)
    members = [(each.id, names[each.id]) for each in data.members]
    return section("Tasks by member", task_matrix(data.tasks, members), to_topology)


def _offsets(data: GroupPage, context: PageContext) -> Markup:
    if not data.lag.partitions:
        return section("Offsets", nothing("The group has no committed offsets."))
    lag = data.lag
    told: dict[str, Cell] = {"records behind": number(lag.records), "partitions": lag.partitions}
    if lag.unknown:
        told["lag unknown in"] = plural(lag.unknown, "partition")
    told["trend"] = sparkline(context.watcher.state.history.points(f"lag:{data.id}"), f"lag of {data.id}")
    return section("Offsets", facts(told), element("p", link("All partitions", "groups", data.id, "offsets")))


def _share_partitions(data: GroupPage) -> Markup:
    if not data.partitions:
        return section("Partitions", nothing("The group has not started reading any partition."))
    columns = (
        Column("topic"),
        *numbers("partition"),
        *numbers("start", "end", are_details=True),
        Column("lag", is_number=True, about=SHARE_LAG),
        Column("finished", is_number=True, about="offsets after the start that are accepted or archived"),
        Column("in flight"),
    )
    rows = (
        (
            topic_link(each.topic),
            each.partition,
            offset(each.start),
            offset(each.end),
            each.lag,
            each.delivery_complete,
            link("window", "groups", data.id, "window", each.topic, each.partition),
        )
        for each in data.partitions
    )
    return section("Partitions", table("Partitions", columns, rows, "start offsets as last written"))


def _history(data: GroupPage, context: PageContext) -> Markup:
    last = data.history[-EPOCHS_SHOWN:]
    told = joined(["History starts at ", since(data.known_since_ms, context.now_ms), "."])
    rest = element("p", told, " ", link("Full timeline", "groups", data.id, "timeline"), ".")
    title = "Epochs" if has_epochs(data.kind) else "Members over time"
    return section(title, history_table(last, data.kind, title), rest) if last else section(title, rest)


def history_table(history: list[Seen], kind: str, caption: str) -> Markup:
    """The newest first."""
    columns = (Column("since", is_named=True), EPOCHS, *numbers("members"))
    is_known = has_epochs(kind)
    rows = (
        (
            moment(each.at_ms),
            epochs(each.epoch, each.assignment_epoch) if is_known else None,
            each.members,
        )
        for each in reversed(history)
    )
    return table(caption, columns, rows)


def _settings(data: GroupPage) -> Markup:
    if data.configs is None or (data.kind == "classic" and not data.configs):
        return NOTHING
    if not data.configs:
        return section("Configs", nothing(f"No configs of {data.kind} groups are visible here."))
    return section("Configs", config_tables(data.configs, "this group"))


PAGE = Page("group", "/groups/{group}", GroupPage, load, render, section="groups")
