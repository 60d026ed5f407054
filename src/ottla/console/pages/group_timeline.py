"""How the epochs and the number of members of a group changed while the console was watching."""

from __future__ import annotations

import msgspec

from ottla.console.group_lookup import find_group
from ottla.console.history import Point
from ottla.console.html.epoch_plot import epoch_plot
from ottla.console.html.groups import group_head, has_epochs
from ottla.console.html.parts import command, nothing, section, since
from ottla.console.page import Content, Page, PageContext
from ottla.console.pages.group import Seen, history_table, seen_of
from ottla.console.state import EVENTS_MAX
from ottla.core.coordinator.partitioner import partition_for
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.facts import Group
from ottla.health.phrases import consume_since

GROUP_TOPIC = "__consumer_offsets"


class Timeline(msgspec.Struct, frozen=True):
    group: str
    kind: str
    known_since_ms: int | None
    history: list[Seen]
    is_cut: bool
    """Whether the oldest changes were dropped for want of room."""
    records: str
    """The command that shows the coordinator's records about the group, for those who may read them."""


async def load(context: PageContext) -> Content[Timeline]:
    found = await find_group(context)
    group = found.fact
    history = [seen_of(each) for each in context.watcher.state.epochs(group.group)]
    data = Timeline(
        group=group.group,
        kind=group.type,
        known_since_ms=context.watcher.history_since_ms,
        history=history,
        is_cut=len(history) >= EVENTS_MAX,
        records=_records(context, group),
    )
    return Content(data, f"Timeline of {group.group}", [found.source], live=(f"group:{group.group}",))


def _records(context: PageContext, group: Group) -> str:
    seen = context.watcher.state.topic(GROUP_TOPIC)
    place = partition_for(group.group, len(seen.fact.partitions)) if seen and seen.fact.partitions else None
    key = "key.group" if group.type == "classic" else "key.groupId"
    return consume_since(GROUP_TOPIC, 0, key, group.group, place)


def render(content: Content[Timeline], context: PageContext) -> Markup:
    data = content.data
    begin = joined(
        [
            "History starts at ",
            since(data.known_since_ms, context.now_ms),
            f"; only the last {EVENTS_MAX} changes are kept" if data.is_cut else "",
            ". Brokers report only the current state of a group. Earlier changes are in the records of ",
            element("code", GROUP_TOPIC),
            " (needs READ): ",
            command(data.records),
        ]
    )
    parts = [group_head(data.group, data.kind, "timeline"), element("p", begin)]
    if not data.history:
        return joined([*parts, nothing("No changes observed yet.")])
    plot = epoch_plot(_series(data), context.now_ms) if len(data.history) > 1 else NOTHING
    return joined([*parts, section("Changes", plot, history_table(data.history, data.kind, "Observed changes"))])


def _series(data: Timeline) -> dict[str, list[Point]]:
    series = {"members": [Point(each.at_ms, each.members) for each in data.history]}
    if not has_epochs(data.kind):
        return series
    return {
        "epoch of the group": [Point(each.at_ms, each.epoch) for each in data.history],
        "epoch of the assignment": [Point(each.at_ms, each.assignment_epoch) for each in data.history],
        **series,
    }


PAGE = Page("group-timeline", "/groups/{group}/timeline", Timeline, load, render, section="groups")
