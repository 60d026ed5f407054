"""The overview: what is wrong first, then what there is."""

from __future__ import annotations

from collections import Counter

import msgspec

from ottla.console.html.findings import finding_cards
from ottla.console.html.parts import Column, facts, link, node_link, section, table
from ottla.console.page import Content, Page, PageContext
from ottla.draw.forms import UNKNOWN
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding, Severity, Unseen
from ottla.health.phrases import plural

KINDS = ("classic", "consumer", "share", "streams")


class Counts(msgspec.Struct, frozen=True):
    nodes: int
    fenced: int
    topics: int
    partitions: int
    offline: int
    under_replicated: int
    groups: dict[str, int]


class QuorumLine(msgspec.Struct, frozen=True):
    leader: int
    epoch: int
    voters: int


class Overview(msgspec.Struct, frozen=True):
    findings: list[Finding]
    unseen: list[Unseen]
    healthy: int
    """How many rules were checked and found nothing."""
    counts: Counts
    states: dict[str, dict[str, int]]
    """Kind of group -> state -> how many groups are in it."""
    quorum: QuorumLine | None


async def load(context: PageContext) -> Content[Overview]:
    state = context.watcher.state
    quorum = state.quorum
    data = Overview(
        findings=state.findings,
        unseen=state.evaluator.engine.unseen(),
        healthy=len(state.evaluator.healthy),
        counts=_counts(context),
        states=_states(context),
        quorum=None
        if quorum is None
        else QuorumLine(
            quorum.fact.leader, quorum.fact.leader_epoch, sum(each.role == "voter" for each in quorum.fact.replicas)
        ),
    )
    return Content(
        data,
        "Overview",
        context.sources("cluster", "topic", "group", "quorum", "lag"),
        context.hidden("cluster", "topic", "group", "quorum"),
        live=("finding", "cluster", "topic", "group", "quorum"),
    )


def _counts(context: PageContext) -> Counts:
    state = context.watcher.state
    brokers = () if state.cluster is None else state.cluster.fact.brokers
    partitions = [each for seen in state.topics.values() for each in seen.fact.partitions]
    kinds = Counter(seen.fact.type for seen in state.groups.values())
    return Counts(
        nodes=len(brokers),
        fenced=sum(bool(each.fenced) for each in brokers),
        topics=len(state.topics),
        partitions=len(partitions),
        offline=sum(each.leader < 0 for each in partitions),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in partitions),
        groups={kind: kinds[kind] for kind in KINDS},
    )


def _states(context: PageContext) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for seen in context.watcher.state.groups.values():
        found.setdefault(seen.fact.type, Counter())[seen.fact.state] += 1
    return {kind: dict(found[kind]) for kind in KINDS if kind in found}


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Overview], context: PageContext) -> Markup:
    data = content.data
    return joined([_findings(data, context), _cluster(data), _groups(data)])


def _findings(data: Overview, context: PageContext) -> Markup:
    is_open = [each for each in data.findings if each.is_open]
    bad = [each for each in is_open if each.severity is not Severity.NOTICE]
    notices = [each for each in is_open if each.severity is Severity.NOTICE]
    over = [each for each in data.findings if not each.is_open]
    parts = [_headline(bad, context), finding_cards(bad, context.now_ms)]
    parts += [
        _folded(f"{plural(len(notices), 'notice')}", notices, context),
        _folded(f"resolved ({len(over)})", over, context),
    ]
    rules = element("p", link("All findings and rules", "findings"), class_="note")
    return section("Findings", *parts, _unseen(data), rules)


def _headline(bad: list[Finding], context: PageContext) -> Markup:
    if bad:
        return NOTHING
    if context.watcher.state.cluster is None:
        return element("p", "No data yet.", class_="lead")
    return element("p", "✓ No problems found.", class_="lead fine-line")


def _folded(title: str, findings: list[Finding], context: PageContext) -> Markup:
    if not findings:
        return NOTHING
    return element("details", element("summary", title), finding_cards(findings, context.now_ms), class_="folded")


def _unseen(data: Overview) -> Markup:
    if not data.unseen:
        return NOTHING
    reasons: dict[str, list[str]] = {}
    for each in data.unseen:
        reasons.setdefault(each.why, []).append(each.rule)
    items = [element("li", why, ": ", ", ".join(rules)) for why, rules in reasons.items()]
    title = f"{plural(len(data.unseen), 'rule')} cannot be checked here"
    return element("details", element("summary", title), element("ul", *items), class_="folded")


def _cluster(data: Overview) -> Markup:
    counts = data.counts
    quorum = data.quorum
    return section(
        "The cluster",
        facts(
            {
                "nodes": joined(
                    [link(str(counts.nodes), "nodes"), f", {counts.fenced} fenced" if counts.fenced else ""]
                ),
                "topics": link(f"{counts.topics:,}", "topics"),
                "partitions": counts.partitions,
                "without a leader": counts.offline,
                "under-replicated": counts.under_replicated,
                "quorum leader": UNKNOWN if quorum is None else node_link(quorum.leader),
                "quorum epoch": None if quorum is None else str(quorum.epoch),
                "voters": None if quorum is None else quorum.voters,
            }
        ),
    )


def _groups(data: Overview) -> Markup:
    rows = [
        (
            element("a", kind, href=f"/groups?kind={kind}"),
            count,
            ", ".join(f"{number} {state}" for state, number in sorted(data.states.get(kind, {}).items())) or "none",
        )
        for kind, count in data.counts.groups.items()
    ]
    columns = (Column("kind"), Column("groups", is_number=True), Column("states"))
    return section("Groups", table("Groups by kind", columns, rows))


PAGE = Page("overview", "/", Overview, load, render, section="overview")
