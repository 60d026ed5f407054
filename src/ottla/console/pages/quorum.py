"""The quorum that keeps the cluster's metadata: who leads, who keeps up, and how many more may fail."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from ottla.client.cluster import METADATA_TOPIC, describe_quorum
from ottla.console.html.findings import finding_cards
from ottla.console.html.parts import (
    Column,
    badge,
    code,
    facts,
    link,
    node_link,
    nothing,
    numbers,
    offset,
    section,
    sparkline,
    table,
)
from ottla.console.page import Content, Degraded, Page, PageContext
from ottla.console.page_parts import load_part
from ottla.draw.forms import ago, identity, moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.facts import Quorum, Replica
from ottla.health.phrases import duration, plural
from ottla.health.quorum import healthy_voters, holding_back, leader_now_ms, leader_of, majority, voters

NEEDS = "DESCRIBE on the cluster"
COLUMNS = (
    Column("node", is_named=True),
    Column("role"),
    *numbers("log end", are_details=True),
    *numbers("behind", "caught up"),
    *numbers("last fetch", are_details=True),
    Column("directory", is_detail=True),
    Column("endpoints", is_detail=True),
    Column("note", is_optional=True),
)


class Endpoint(msgspec.Struct, frozen=True):
    listener: str
    host: str
    port: int


class ReplicaRow(msgspec.Struct, frozen=True):
    """Times are ages on the leader's clock; None where it does not tell, or the replica has not fetched from it."""

    id: int
    role: str
    dir: str | None
    leo: int | None
    lag: int | None
    last_fetch_ms: int | None
    caught_up_ms: int | None
    is_healthy: bool | None
    holds_back: bool
    listeners: list[Endpoint]


class ElectionRow(msgspec.Struct, frozen=True):
    at_ms: int
    epoch: int
    leader: int
    gap_ms: int
    """How long no leader was seen."""


class QuorumData(msgspec.Struct, frozen=True):
    """`sentence` says the most important; the rest is None where the cluster does not describe its quorum."""

    sentence: str
    leader: int | None = None
    epoch: int | None = None
    hw: int | None = None
    leo: int | None = None
    majority: int | None = None
    healthy: list[int] | None = None
    margin: int | None = None
    voters: list[ReplicaRow] = []
    observers: list[ReplicaRow] = []
    elections: list[ElectionRow] = []


Endpoints = Mapping[int, Sequence[tuple[str, str, int]]]


async def load(context: PageContext) -> Content[QuorumData]:
    seen = context.watcher.state.quorum
    hidden = context.hidden("quorum")
    if seen is None:
        data = QuorumData(_absent(context, hidden))
        return Content(data, "Quorum", context.sources("quorum"), hidden, live=("quorum",))
    asked = await load_part(context, "endpoints", ("quorum",), describe_quorum, needs=NEEDS)
    endpoints = {} if asked.value is None else {each.node_id: each.endpoints for each in asked.value.voters}
    if asked.value is not None and not any(endpoints.values()):
        asked.degraded.append(Degraded("endpoints", "needs DescribeQuorum version 2 (Kafka 3.9)"))
    elections = [ElectionRow(each.at_ms, each.epoch, each.leader, each.gap_ms)
                 for each in context.watcher.state.elections]  # fmt: skip
    data = quorum_data(seen.fact, endpoints, elections)
    return Content(
        data, "Quorum", [*context.sources("quorum"), *asked.sources], [*hidden, *asked.degraded],
        live=("quorum", "finding"),
    )  # fmt: skip


def _absent(context: PageContext, hidden: Sequence[Degraded]) -> str:
    error = context.watcher.state.errors.get("quorum")
    why = next((each.why for each in hidden if each.what == "quorum"), error and error[1])
    if why:
        return f"DescribeQuorum is not available: {why}"
    return "No quorum data yet."


def quorum_data(fact: Quorum, endpoints: Endpoints, elections: list[ElectionRow]) -> QuorumData:
    leader = leader_of(fact)
    end = None if leader is None else leader.log_end
    is_behind = fact.high_watermark is not None and end is not None and fact.high_watermark < end
    held = frozenset(holding_back(fact)) - {fact.leader} if is_behind else frozenset()
    healthy = healthy_voters(fact)
    rows = [_row(each, fact, healthy, held, endpoints.get(each.id, ())) for each in fact.replicas]
    return QuorumData(
        sentence=sentence(fact),
        leader=fact.leader if fact.leader >= 0 else None,
        epoch=fact.leader_epoch,
        hw=fact.high_watermark,
        leo=end,
        majority=majority(fact),
        healthy=healthy,
        margin=None if healthy is None else len(healthy) - majority(fact),
        voters=sorted((each for each in rows if each.role != "observer"), key=lambda each: (each.role, each.id)),
        observers=sorted((each for each in rows if each.role == "observer"), key=lambda each: each.id),
        elections=elections[::-1],
    )


def _row(
    replica: Replica,
    fact: Quorum,
    healthy: list[int] | None,
    held: frozenset[int],
    endpoints: Sequence[tuple[str, str, int]],
) -> ReplicaRow:
    leader = leader_of(fact)
    is_leader, is_voter = replica.id == fact.leader, replica.role == "voter"
    end = None if leader is None else leader.log_end
    now_ms = leader_now_ms(fact)
    return ReplicaRow(
        id=replica.id,
        role="leader" if is_leader else replica.role,
        dir=replica.dir,
        leo=replica.log_end,
        lag=None if is_leader or end is None or replica.log_end is None else max(0, end - replica.log_end),
        last_fetch_ms=None if is_leader else _ago(replica.last_fetch_ts, now_ms),
        caught_up_ms=None if is_leader else _ago(replica.last_caught_up_ts, now_ms),
        is_healthy=None if healthy is None or not is_voter else replica.id in healthy,
        holds_back=is_voter and replica.id in held,
        listeners=[Endpoint(*each) for each in endpoints],
    )


def _ago(then_ms: int | None, now_ms: int | None) -> int | None:
    """-1 is the time of a replica that has not fetched from this leader."""
    return None if then_ms is None or now_ms is None or then_ms < 0 else max(0, now_ms - then_ms)


def sentence(fact: Quorum) -> str:
    """`2 of 3 voters are healthy, majority 2: no margin`."""
    count, needed, healthy = len(voters(fact)), majority(fact), healthy_voters(fact)
    if fact.leader < 0:
        return f"The quorum has no leader: metadata cannot change. It has {plural(count, 'voter')}, majority {needed}."
    if healthy is None:
        return f"{plural(count, 'voter')}, majority {needed}; this cluster does not report their fetch times."
    margin = len(healthy) - needed
    be = "is" if count == 1 else "are"
    return f"{len(healthy)} of {plural(count, 'voter')} {be} healthy, majority {needed}: {_margin(margin, count)}."


def _margin(margin: int, count: int) -> str:
    if margin < 0:
        return "too few, metadata cannot change"
    if margin == 0:
        return "no margin" + ("" if count == 1 else ", one more failure stops metadata changes")
    return f"{margin} more may fail"


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[QuorumData], context: PageContext) -> Markup:
    data = content.data
    lead = element("p", data.sentence, class_="lead")
    if data.epoch is None:
        needs = nothing("This page needs DescribeQuorum (Kafka 3.3) and DESCRIBE on the cluster.")
        return joined([lead, needs, element("p", "Brokers are among the ", link("nodes", "nodes"), ".")])
    return joined(
        [
            lead,
            _about(data, context),
            _findings(context),
            section("Voters", table("Voters", COLUMNS, map(_cells, data.voters)),
                    note="Times are differences on the leader's clock."),
            section("Observers", table("Observers", COLUMNS, map(_cells, data.observers))
                    if data.observers else nothing("No observers.")),
            section("Elections", _elections(data, context)),
        ]
    )  # fmt: skip


def _about(data: QuorumData, context: PageContext) -> Markup:
    return facts(
        {
            "leader": node_link(data.leader),
            "epoch": offset(data.epoch),
            "high watermark": offset(data.hw),
            "end of the leader's log": joined([offset(data.leo), " · ", link("its records", "topics", METADATA_TOPIC)]),
            "majority": data.majority,
            "high watermark over time": sparkline(context.watcher.state.history.points("quorum"), "high watermark"),
        }
    )


def _findings(context: PageContext) -> Markup:
    found = [each for each in context.watcher.state.findings if each.is_open and each.subject.kind == "quorum"]
    return section("Findings", finding_cards(found, context.now_ms)) if found else NOTHING


def _cells(row: ReplicaRow) -> tuple[Markup | str | None, ...]:
    is_leader = row.role == "leader"
    places = [code(f"{each.listener}://{each.host}:{each.port}") for each in row.listeners]
    return (
        node_link(row.id),
        row.role,
        offset(row.leo),
        _of_followers(is_leader, offset(row.lag)),
        _of_followers(is_leader, _when(row.caught_up_ms)),
        _of_followers(is_leader, _when(row.last_fetch_ms)),
        identity(row.dir),
        joined(places, ", ") if places else None,
        _note(row),
    )


def _of_followers(is_leader: bool, cell: Markup) -> Markup:
    return element("span", "–", class_="unknown", title="the leader does not fetch") if is_leader else cell


def _when(ago_ms: int | None) -> Markup:
    if ago_ms is None:
        return element("span", "–", class_="unknown", title="has not fetched from this leader, or unknown")
    return ago(ago_ms) if ago_ms < 1_000 else joined([ago(ago_ms), " ago"])


def _note(row: ReplicaRow) -> Markup | None:
    notes = []
    if row.is_healthy is False:
        notes.append(badge("▲ not healthy", "light critical"))
    if row.holds_back:
        notes.append(badge("holds back the high watermark", "light warning"))
    return joined(notes, " ") if notes else None


def _elections(data: QuorumData, context: PageContext) -> Markup:
    watched = joined(["History starts at ", moment(context.watcher.history_since_ms), "."])
    if not data.elections:
        return element("p", "No elections observed. ", watched, class_="nothing")
    known = {each.id for each in (*data.voters, *data.observers)}
    rows = [
        (moment(each.at_ms), offset(each.epoch), _elected(each.leader, known), duration(each.gap_ms))
        for each in data.elections
    ]
    columns = (
        Column("seen at", is_named=True),
        *numbers("epoch"),
        Column("leader"),
        *numbers("without a leader, at most"),
    )
    return joined([table("Elections", columns, rows), element("p", watched, class_="note")])


def _elected(node_id: int, known: Container[int]) -> Markup:
    """Nodes that have left have no page."""
    return node_link(node_id) if node_id in known else joined([str(node_id), " ", badge("has left")])


PAGE = Page("quorum", "/quorum", QuorumData, load, render, section="quorum")
