"""All groups of all four kinds, with their lag and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from ottla.console.group_lookup import lag_sum
from ottla.console.html.findings import finding_line, of_subject
from ottla.console.html.groups import SHARE_LAG, epochs, has_epochs
from ottla.console.html.navigation import Choice, Text, every_one_of, filter_form, tabs
from ottla.console.html.parts import Column, badge, group_link, more, node_link, nothing, sparkline, table, with_query
from ottla.console.page import Content, Page, PageContext, one_page
from ottla.draw.forms import number
from ottla.draw.markup import Markup, element, joined
from ottla.health import Finding
from ottla.health.facts import Group
from ottla.health.phrases import plural

KINDS: Final = ("classic", "consumer", "share", "streams")
PATH: Final = "/groups"
COLUMNS: Final = (
    Column("group"),
    Column("kind"),
    Column("state"),
    Column("coordinator", is_detail=True),
    Column("members", is_number=True, is_detail=True),
    Column("epoch", is_number=True, about="group epoch (assignment epoch); bold if they differ", is_detail=True),
    Column("lag", is_number=True, about=SHARE_LAG),
    Column("trend", about="lag since this console started", is_detail=True),
    Column("findings"),
)
HOW_TO: Final = {
    "classic": "A classic group appears when its first consumer joins.",
    "consumer": "A consumer group appears when its first consumer joins with group.protocol=consumer.",
    "share": "A share group appears when its first consumer joins: docs/how-to/share.md shows how.",
    "streams": "A streams group appears when a Kafka Streams application starts with group.protocol=streams.",
}


class GroupRow(msgspec.Struct, frozen=True):
    id: str
    kind: str
    protocol: str | None
    state: str
    coordinator: int | None
    members: int
    epoch: int | None
    assignment_epoch: int | None
    lag: int | None
    lag_unknown: int
    """In how many partitions the lag is not known."""
    findings: list[str]
    """The rules that have an open finding on it."""


class Groups(msgspec.Struct, frozen=True):
    rows: list[GroupRow]
    total: int
    matching: int
    by_kind: dict[str, int]
    by_state: dict[str, int]


async def load(context: PageContext) -> Content[Groups]:
    facts = [seen.fact for _, seen in sorted(context.watcher.state.groups.items())]
    kind, state = context.choice("kind", KINDS), context.query.get("state", "")
    text = context.query.get("q", "").lower()
    matching = [
        each for each in facts
        if kind in ("", each.type) and state in ("", each.state) and text in each.group.lower()
    ]  # fmt: skip
    shown, next_name = one_page(matching, lambda each: each.group, context)
    found = of_subject(context.watcher.state.findings, "group")
    data = Groups(
        rows=[_row(each, context, found) for each in shown],
        total=len(facts),
        matching=len(matching),
        by_kind={each: sum(fact.type == each for fact in facts) for each in KINDS},
        by_state=dict(sorted(Counter(each.state for each in facts).items())),
    )
    kinds = ("group", "lag", "share_offsets")
    return Content(
        data, "Groups", context.sources(*kinds), context.hidden(*kinds), live=("group", "finding"), next=next_name
    )


def _row(fact: Group, context: PageContext, findings: Mapping[str, list[Finding]]) -> GroupRow:
    lag = lag_sum(context.watcher.state, fact)
    is_known = has_epochs(fact.type)
    return GroupRow(
        id=fact.group,
        kind=fact.type,
        protocol=fact.protocol,
        state=fact.state,
        coordinator=fact.coordinator,
        members=len(fact.members),
        epoch=fact.group_epoch if is_known else None,
        assignment_epoch=fact.assignment_epoch if is_known else None,
        lag=lag.records,
        lag_unknown=lag.unknown,
        findings=[each.rule for each in findings.get(fact.group, ())],
    )


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Groups], context: PageContext) -> Markup:
    data = content.data
    return joined(
        [
            _kinds(data, context),
            _filter(data, context),
            _listing(data, context) if data.rows else _empty(data, context),
            more(content.next, PATH, context.query),
        ]
    )


def _kinds(data: Groups, context: PageContext) -> Markup:
    current = context.query.get("kind", "")
    counts = {"": data.total, **data.by_kind}
    entries = [(_address(context, kind=kind), f"{kind or 'all'} {count:,}") for kind, count in counts.items()]
    return tabs(entries, _address(context, kind=current), "Kinds of groups")


def _address(context: PageContext, **changes: str) -> str:
    return with_query(PATH, **{key: context.query.get(key, "") for key in ("kind", "state", "q")} | changes)


def _filter(data: Groups, context: PageContext) -> Markup:
    fields = (Choice("state", "State", every_one_of(data.by_state)), Text("q", "Name contains"))
    return filter_form(PATH, fields, context.query, hidden=("kind",))


def _listing(data: Groups, context: PageContext) -> Markup:
    note = f"{len(data.rows):,} of {data.matching:,}" if len(data.rows) < data.matching else ""
    findings = of_subject(context.watcher.state.findings, "group")
    return table("Groups", COLUMNS, (_cells(each, context, findings) for each in data.rows), note)


def _cells(row: GroupRow, context: PageContext, findings: Mapping[str, list[Finding]]) -> tuple[str | int, ...]:
    return (
        group_link(row.id),
        row.kind,
        badge(row.state, "ok" if row.state == "Stable" else ""),
        node_link(row.coordinator),
        row.members,
        epochs(row.epoch, row.assignment_epoch),
        _lag(row),
        sparkline(context.watcher.state.history.points(f"lag:{row.id}"), f"lag of {row.id}"),
        finding_line(findings.get(row.id, ())),
    )


def _lag(row: GroupRow) -> Markup:
    if row.lag is None or not row.lag_unknown:
        return number(row.lag)
    told = f"without {plural(row.lag_unknown, 'partition')} with unknown lag"
    return element("span", "≥ ", number(row.lag), title=told)


def _empty(data: Groups, context: PageContext) -> Markup:
    kind = context.query.get("kind", "")
    if context.watcher.probed_ms("group") is None and not data.total:
        return nothing("No groups observed yet.")
    if kind and not data.by_kind[kind]:
        return nothing(f"No {kind} groups. {HOW_TO[kind]}")
    if not data.total:
        return nothing("No groups yet. A group appears when its first member joins or commits an offset.")
    return nothing(f"0 of {plural(data.total, 'group')} match.")


PAGE = Page("groups", PATH, Groups, load, render, frozenset({"kind", "state", "q", "after", "limit"}), section="groups")
