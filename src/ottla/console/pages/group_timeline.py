"""How the epochs and the members of a group have changed.

Its coordinator has written that to `__consumer_offsets`. Who may not read it sees what the console has seen since it
was started; the page says which of the two it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.client import Client
from ottla.console.group_lookup import find_group
from ottla.console.group_records import STEPS_MAX, GroupTimeline, Step, UnreadableError, read_on
from ottla.console.html.epoch_plot import epoch_plot
from ottla.console.html.groups import EPOCHS, epochs, group_tabs, has_epochs, long_list
from ottla.console.html.parts import Cell, Column, code, command, nothing, numbers, section, since, table
from ottla.console.html.records import record_time
from ottla.console.page import Content, Degraded, Page, PageContext
from ottla.console.page_parts import Part, load_part
from ottla.core.coordinator.partitioner import partition_for
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.facts import Group
from ottla.health.phrases import consume_since
from ottla.observe.cluster_state import EVENTS_MAX
from ottla.observe.series_history import Point
from ottla.wire.keyed import GROUP_TOPIC

RECORDS, SAMPLES = "records", "samples"
WHAT: Final = "timeline from records"


class Timeline(msgspec.Struct, frozen=True):
    group: str
    kind: str
    source: str
    """records: of the coordinator; samples: of this console."""
    known_since_ms: int | None
    history: list[Step]
    has_epochs: bool
    is_cut: bool
    """Whether the oldest changes were dropped for want of room."""
    records: str
    """The command that shows the coordinator's records about the group, for those who may read them."""


async def load(context: PageContext) -> Content[Timeline]:
    found = await find_group(context)
    group = found.fact
    read = await _from_records(context, group.group)
    written = [] if read.value is None else read.value.steps()
    is_read = bool(written)
    history = written or _sampled(context, group.group)
    data = Timeline(
        group=group.group,
        kind=group.type,
        source=RECORDS if is_read else SAMPLES,
        known_since_ms=history[0].at_ms if is_read else context.watcher.history_since_ms,
        history=history,
        has_epochs=is_read or has_epochs(group.type),
        is_cut=bool(read.value and read.value.is_cut) if is_read else len(history) >= EVENTS_MAX,
        records=_command(context, group),
    )
    return Content(
        data,
        f"Timeline of {group.group}",
        [*read.sources, found.source],
        read.degraded,
        live=(f"group:{group.group}",),
    )


async def _from_records(context: PageContext, group: str) -> Part[GroupTimeline]:
    """Each look goes on where the last one has stopped."""
    kept = context.watcher.timelines

    async def work(client: Client) -> GroupTimeline:
        timeline = await read_on(client, group, kept.pop(group))
        return kept.touch(group, lambda: timeline)

    try:
        return await load_part(context, WHAT, (WHAT, group), work, needs=f'READ on Topic "{GROUP_TOPIC}"')
    except UnreadableError as error:
        return Part(None, [], [Degraded(WHAT, str(error))])


def _sampled(context: PageContext, group: str) -> list[Step]:
    return [Step(each.at_ms, each.epoch, each.assignment_epoch, each.members)
            for each in context.watcher.state.epochs(group)]  # fmt: skip


def _command(context: PageContext, group: Group) -> str:
    seen = context.watcher.state.topic(GROUP_TOPIC)
    place = partition_for(group.group, len(seen.fact.partitions)) if seen and seen.fact.partitions else None
    key = "key.group" if group.type == "classic" else "key.groupId"
    return consume_since(GROUP_TOPIC, 0, key, group.group, place)


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Timeline], context: PageContext) -> Markup:
    data = content.data
    parts = [group_tabs(data.group, data.kind, "timeline"), _told(content, context)]
    if not data.history:
        return joined([*parts, nothing("No changes observed yet.")])
    plot = epoch_plot(_series(data), context.now_ms) if len(data.history) > 1 else NOTHING
    return joined([*parts, section("Changes", plot, _table(data))])


def _told(content: Content[Timeline], context: PageContext) -> Markup:
    data = content.data
    begin = joined(["History starts at ", since(data.known_since_ms, context.now_ms), _cut(data), ". "])
    if data.source == RECORDS:
        source = ["From the records of its coordinator. Older changes may have been compacted away. "]
    else:
        why = next((each.why for each in content.degraded if each.what == WHAT), "its coordinator has written none")
        source = ["From samples of this console: brokers report only the current state of a group. The records of ",
                  code(GROUP_TOPIC), f" were not read: {why}. "]  # fmt: skip
    more = joined(["All records about it: ", command(data.records)])
    return joined([element("p", *source, begin, class_="tier"), element("p", more, class_="note")])


def _cut(data: Timeline) -> str:
    kept = STEPS_MAX if data.source == RECORDS else EVENTS_MAX
    return f"; only the last {kept} changes are kept" if data.is_cut else ""


def _table(data: Timeline) -> Markup:
    """The newest first."""
    columns = [Column("since", is_named=True), EPOCHS, *numbers("members")]
    if data.source == RECORDS:
        columns += [Column("joined"), Column("left", is_optional=True)]
    return table("Changes", columns, (_cells(each, data) for each in reversed(data.history)))


def _cells(step: Step, data: Timeline) -> list[Cell]:
    cells: list[Cell] = [
        record_time(step.at_ms),
        epochs(step.epoch, step.assignment_epoch) if data.has_epochs else None,
        step.members,
    ]
    if data.source == RECORDS:
        cells += [long_list(some, "members") if some else " " for some in (step.joined, step.left)]
    return cells


def _series(data: Timeline) -> dict[str, list[Point]]:
    series = {"members": [Point(each.at_ms, each.members) for each in data.history]}
    if not data.has_epochs:
        return series
    return {
        "epoch of the group": [Point(each.at_ms, each.epoch) for each in data.history],
        "epoch of the assignment": [Point(each.at_ms, each.assignment_epoch) for each in data.history],
        **series,
    }


PAGE = Page("group-timeline", "/groups/{group}/timeline", Timeline, load, render, section="groups")
