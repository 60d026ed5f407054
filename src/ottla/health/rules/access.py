"""Transactions that hold readers up, logins that fail, and observation itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.health.facts import FACTS, Fact, LoginFailures, Transaction, TransactionPartition
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.phrases import clock, href, join, number, plural, word
from ottla.health.rule import Match, RuleContext, Scope, rule

MINUTE_MS: Final = 60_000
LOOPBACK: Final = ("127.", "localhost", "::1")
ABORTS: Final = 3
"""For so many partitions of a transaction there is a next step that aborts it."""
OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


@rule(
    "hanging-transaction", Severity.WARNING, Tier.ADMIN, on=["transactions"], scope=["id", "producer"],
    needs=["transactions"],
    condition="a transaction has been open for longer than transaction.max.timeout.ms, or no coordinator knows it",
    why="read_committed consumers cannot read past it.",
)  # fmt: skip
def hanging_transaction(ctx: RuleContext) -> Iterator[Match]:
    seen = ctx.history.transactions.get((ctx.scope[0] or "", ctx.scope[1]))
    if seen is None or seen.fact.state not in OPEN:
        return
    fact = seen.fact
    limit_ms = ctx.history.configs.of_brokers("transaction.max.timeout.ms")
    is_old = fact.started is not None and ctx.now_ms - fact.started > limit_ms
    if fact.id is not None and not is_old:
        return
    started = fact.started if fact.started is not None and fact.started >= 0 else None
    name = fact.id or f"producer {fact.producer}"
    since = clock(started) if started is not None else clock(ctx.began(Subject("transaction", name)))
    blocked = f"read_committed consumers of {join(_held(fact), 'its partitions')}"
    yield Match(
        subject=Subject("transaction", name),
        since_ms=None if fact.id is None or started is None else started + limit_ms,
        sentence=f"{name} has blocked {blocked} since {since}",
        past=f"{name} blocked {blocked}",
        evidence={"producer": fact.producer, "state": fact.state, "known": fact.id is not None, "limit_ms": limit_ms,
                  "partitions": [f"{each.topic}-{each.partition}" for each in fact.partitions]},
        next=_aborts(fact),
    )  # fmt: skip


def _held(fact: Transaction) -> Iterator[str]:
    for each in fact.partitions:
        at = "" if each.first_offset is None else f" at {number(each.first_offset)}"
        yield f"{each.topic}-{each.partition}{at}"


def _aborts(fact: Transaction) -> list[NextStep]:
    """A hanging transaction is aborted partition by partition."""
    where = href("transactions")
    if not fact.partitions:
        return [NextStep("find the partitions where it is open", "ottla topics transactions list", where)]
    steps = [
        NextStep(f"abort it in {each.topic}-{each.partition}, if its producer is gone", _abort(fact, each), where)
        for each in fact.partitions[:ABORTS]
    ]
    rest = len(fact.partitions) - ABORTS
    if rest > 0:
        steps.append(NextStep(f"and in {plural(rest, 'more partition')}", "ottla topics transactions list", where))
    return steps


def _abort(fact: Transaction, at: TransactionPartition) -> str:
    which = f"--producer-id {fact.producer}" if at.first_offset is None else f"--start-offset {at.first_offset}"
    return f"ottla topics transactions abort {word(at.topic)} --partition {at.partition} {which}"


def _user_and_address(fact: Fact) -> Iterator[Scope]:
    if isinstance(fact, LoginFailures):
        yield "user", fact.user
        yield "address", fact.address


@rule(
    "auth-failures", Severity.WARNING, Tier.OTTLA, on=["login_failures"], scope=_user_and_address,
    needs=["login_failures"],
    condition="20 or more logins from one address or for one user fail in a minute",
    why="Someone is guessing passwords, or a deployed secret is wrong.",
    limits={"per_minute": 20},
)  # fmt: skip
def auth_failures(ctx: RuleContext) -> Iterator[Match]:
    kind, name = ctx.scope
    seen = ctx.history.logins.get((kind, name))
    count = seen.gained(ctx.now_ms, MINUTE_MS) if seen else 0
    others = seen.others(ctx.now_ms, MINUTE_MS) if seen else []
    if count < ctx.limits["per_minute"] or (kind == "address" and len(others) < 2):
        return  # the finding about the user says it already
    user, address = (name, join(others)) if kind == "user" else (join(others), name)
    logins = f"logins for {user} from {address}"
    yield Match(
        subject=Subject(kind, name),
        sentence=f"{number(count)} {logins} failed in the last minute",
        past=f"{number(count)} {logins} failed in one minute",
        evidence={"failed": count, kind: name, "others": others},
        next=[
            NextStep(
                "block the address if it is not yours; otherwise correct the password", href=href("security", "users")
            )
        ],
    )


@rule(
    "refused-requests", Severity.NOTICE, Tier.OTTLA, on=["refusals"], scope=["principal"], needs=["refusals"],
    condition="20 or more requests from a principal are denied by ACLs in a minute",
    why="A client lacks a permission that it needs, or someone is probing for access.",
    limits={"per_minute": 20},
)  # fmt: skip
def refused_requests(ctx: RuleContext) -> Iterator[Match]:
    (principal,) = ctx.scope
    seen = ctx.history.refusals.get(principal)
    count = seen.gained(ctx.now_ms, MINUTE_MS) if seen else 0
    if seen is None or count < ctx.limits["per_minute"]:
        return
    apis = seen.others(ctx.now_ms, MINUTE_MS)
    requests = f"{number(count)} requests from {principal}"
    yield Match(
        subject=Subject("user", principal),
        sentence=f"{requests} were denied in the last minute: {join(apis)}",
        past=f"{requests} were denied in one minute: {join(apis)}",
        evidence={"refused": count, "principal": principal, "apis": apis},
        next=[NextStep("the node's audit.jsonl names the missing permission; grant it, or stop the client",
                       href=href("security", "acls"))],
    )  # fmt: skip


@rule(
    "open-listener", Severity.NOTICE, Tier.ADMIN, on=["configs", "cluster"], scope=[], needs=["configs"],
    condition="a listener that is not on loopback has neither SASL nor ssl.client.auth=required",
    why="Anyone who can reach it can read, write and delete.",
)  # fmt: skip
def open_listener(ctx: RuleContext) -> Iterator[Match]:
    for node, values in ctx.history.configs.of_each_broker():
        names = list(_open_listeners(values))
        if names:
            yield Match(
                subject=Subject("node", node),
                sentence=f"Node {node} accepts clients without authentication on {join(names)}",
                past=f"Node {node} accepted clients without authentication on {join(names)}",
                evidence={"listeners": names},
                next=[NextStep("require authentication: see docs/how-to/security.md", href=href("nodes", node))],
            )


def _open_listeners(values: Mapping[str, str | None]) -> Iterator[str]:
    protocols = dict(
        entry.strip().split(":", 1)
        for entry in (values.get("listener.security.protocol.map") or "").split(",")
        if ":" in entry
    )
    for text in (values.get("listeners") or "").split(","):
        name, _, address = text.strip().partition("://")
        host = address.rpartition(":")[0].strip("[]")
        protocol = protocols.get(name.upper(), name.upper())
        has_login = protocol.startswith("SASL") or (protocol == "SSL" and values.get("ssl.client.auth") == "required")
        if address and not has_login and not host.startswith(LOOPBACK):
            yield text.strip()


def _next_silence(ctx: RuleContext) -> int | None:
    return ctx.history.sampled_ms + _silence_ms(ctx) if ctx.history.sampled_ms else None


def _silence_ms(ctx: RuleContext) -> int:
    return round(ctx.limits["intervals"] * ctx.ms("interval_s"))


@rule(
    "observer-stale", Severity.NOTICE, Tier.SAMPLES, on=list(FACTS), scope=[], needs=[], persists=True,
    wake=_next_silence,
    condition="the newest observation is older than 3 intervals",
    why="What has happened since then is unknown.",
    limits={"interval_s": 10, "intervals": 3},
)  # fmt: skip
def observer_stale(ctx: RuleContext) -> Iterator[Match]:
    newest_ms = ctx.history.sampled_ms
    if not newest_ms or ctx.now_ms - newest_ms < _silence_ms(ctx):
        return
    yield Match(
        subject=Subject("observer", "ottla observe"), since_ms=newest_ms,
        sentence=f"No observations since {clock(newest_ms)}",
        past=f"Observations stopped after {clock(newest_ms)}",
        evidence={"newest_ms": newest_ms},
        next=[NextStep("restart the observer", "ottla observe")],
    )  # fmt: skip
