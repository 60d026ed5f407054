"""Transactions that hold readers up, logins that fail, and observation itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.health.facts import FACTS, Fact, LoginFailures, Transaction, TransactionPartition
from ottla.health.finding import Next, Severity, Subject, Tier
from ottla.health.rule import Scope, See, Sighting, rule
from ottla.health.wording import clock, href, join, number, plural, word

MINUTE_MS: Final = 60_000
ABORTS: Final = 3
"""Partitions in which a transaction is aborted by steps of their own."""
OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


@rule(
    "hanging-transaction", Severity.WARNING, Tier.ADMIN, on=["transactions"], scope=["id", "producer"],
    needs=["transactions"],
    condition="a transaction is open for longer than transaction.max.timeout.ms, or a producer holds one open that no "
    "coordinator knows",
    why="Readers of committed records wait behind it.",
)  # fmt: skip
def hanging_transaction(see: See) -> Iterator[Sighting]:
    seen = see.world.transactions.get((see.scope[0] or "", see.scope[1]))
    if seen is None or seen.fact.state not in OPEN:
        return
    fact = seen.fact
    limit_ms = see.world.settings.of_brokers("transaction.max.timeout.ms")
    is_old = fact.started is not None and see.now_ms - fact.started > limit_ms
    if fact.id is not None and not is_old:
        return
    started = fact.started if fact.started is not None and fact.started >= 0 else None
    name = fact.id or f"producer {fact.producer}"
    since = clock(started) if started is not None else clock(see.began(Subject("transaction", name)))
    yield Sighting(
        subject=Subject("transaction", name),
        since_ms=None if fact.id is None or started is None else started + limit_ms,
        sentence=f"{name} holds readers of {join(_held(fact), 'its partitions')} since {since}",
        evidence={"producer": fact.producer, "state": fact.state, "known": fact.id is not None, "limit_ms": limit_ms,
                  "partitions": [f"{each.topic}-{each.partition}" for each in fact.partitions]},
        next=_aborts(fact),
    )  # fmt: skip


def _held(fact: Transaction) -> Iterator[str]:
    for each in fact.partitions:
        at = "" if each.first_offset is None else f" at {number(each.first_offset)}"
        yield f"{each.topic}-{each.partition}{at}"


def _aborts(fact: Transaction) -> list[Next]:
    """It is aborted partition by partition."""
    where = href("transactions")
    if not fact.partitions:
        return [Next("look where it is open", "ottla topics transactions list", where)]
    steps = [
        Next(f"abort it in {each.topic}-{each.partition}, if its producer is gone", _abort(fact, each), where)
        for each in fact.partitions[:ABORTS]
    ]
    rest = len(fact.partitions) - ABORTS
    if rest > 0:
        steps.append(Next(f"and in {plural(rest, 'more partition')}", "ottla topics transactions list", where))
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
    condition="20 or more logins in a minute fail from one address, or for one user",
    why="Somebody guesses passwords, or a deployed secret is wrong.",
    limits={"per_minute": 20},
)  # fmt: skip
def auth_failures(see: See) -> Iterator[Sighting]:
    kind, name = see.scope
    seen = see.world.logins.get((kind, name))
    count = seen.gained(see.now_ms, MINUTE_MS) if seen else 0
    others = seen.others(see.now_ms, MINUTE_MS) if seen else []
    if count < see.limits["per_minute"] or (kind == "address" and len(others) < 2):
        return  # one user from one address is said of the user
    user, address = (name, join(others)) if kind == "user" else (join(others), name)
    yield Sighting(
        subject=Subject(kind, name),
        sentence=f"{number(count)} failed logins for {user} from {address}",
        evidence={"failed": count, kind: name, "others": others},
        next=[Next("block the address if it is not yours; else replace the password", href=href("security", "users"))],
    )


def _next_silence(see: See) -> int | None:
    return see.world.newest_ms + _silence_ms(see)


def _silence_ms(see: See) -> int:
    return round(see.limits["intervals"] * see.ms("interval_s"))


@rule(
    "observer-stale", Severity.NOTICE, Tier.SAMPLES, on=list(FACTS), scope=[], needs=[], carries=True,
    wake=_next_silence,
    condition="the newest observation is older than 3 intervals",
    why="What happened meanwhile is not known.",
    limits={"interval_s": 10, "intervals": 3},
)  # fmt: skip
def observer_stale(see: See) -> Iterator[Sighting]:
    newest_ms = see.world.newest_ms
    if see.now_ms - newest_ms < _silence_ms(see):
        return
    yield Sighting(
        subject=Subject("observer", "ottla observe"), since_ms=newest_ms,
        sentence=f"History has a hole since {clock(newest_ms)}",
        evidence={"newest_ms": newest_ms},
        next=[Next("restart the observer", "ottla observe")],
    )  # fmt: skip
