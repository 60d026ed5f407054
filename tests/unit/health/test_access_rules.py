"""Rules about transactions, logins and observation itself."""

from __future__ import annotations

import pytest

from ottla.health import Engine, Severity
from ottla.health.facts import (
    Broker,
    Cluster,
    Configs,
    Coverage,
    Gone,
    LoginFailures,
    Refusals,
    Transaction,
    TransactionPartition,
)
from tests.unit.health.story import START_MS, Case, Story, always, check

HELD = (TransactionPartition(topic="orders", partition=2, first_offset=4133),)
MINUTES = Configs(resource="broker", name="1", values={"transaction.max.timeout.ms": "600000"})


def transaction(started: int, state: str = "Ongoing", name: str | None = "pay-1") -> Transaction:
    return Transaction(id=name, state=state, producer=7, started=START_MS + started * 1000, partitions=HELD)


def listening(listeners: str, **more: str) -> Configs:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,OUT:SSL,SASL_SSL:SASL_SSL"}
    return Configs(resource="broker", name="1", values={"listeners": listeners, **protocols, **more})


CASES = [
    Case(
        "hanging-transaction",
        always(transaction(-601)),
        always(transaction(-601, "CompleteAbort")),
        before=(MINUTES,),
        hold=0,
        sentence="pay-1 has blocked read_committed consumers of orders-2 at 4,133 since 2026-09-21 14:03:19 UTC",
        past="pay-1 blocked read_committed consumers of orders-2 at 4,133",
        severity=Severity.WARNING,
    ),
    Case(
        "hanging-transaction",
        always(transaction(-5, name=None)),
        always(transaction(-5, "Empty", name=None)),
        hold=0,
        sentence="producer 7 has blocked read_committed consumers of orders-2 at 4,133 since 2026-09-21 14:13:15 UTC",
        past="producer 7 blocked read_committed consumers of orders-2 at 4,133",
        severity=Severity.WARNING,
    ),
    Case(
        "open-listener",
        always(listening("PLAINTEXT://:9092,INSIDE://127.0.0.1:9094")),
        always(listening("SASL_SSL://:9093,INSIDE://127.0.0.1:9094")),
        hold=0,
        sentence="Node 1 accepts clients without authentication on PLAINTEXT://:9092",
        past="Node 1 accepted clients without authentication on PLAINTEXT://:9092",
        severity=Severity.NOTICE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


def test_a_node_that_has_left_the_cluster_accepts_nobody() -> None:
    both, one = (Cluster(brokers=tuple(Broker(id=each, fenced=False) for each in ids)) for ids in ((1, 2), (2,)))
    story = Story().tell(both, listening("PLAINTEXT://:9092"))
    assert story.open("open-listener")

    story.during(10, 60, 10, always(one))

    assert story.resolved("open-listener")
    assert not story.open("open-listener")


def test_a_transaction_hangs_a_moment_after_its_longest_time_out() -> None:
    story = Story().at(600, MINUTES, transaction(0))
    assert not story.open("hanging-transaction")

    [finding] = story.at(600.001, transaction(0)).open("hanging-transaction")

    assert finding.next[0].command == "ottla topics transactions abort orders --partition 2 --start-offset 4133"


def test_the_limit_of_a_node_that_has_left_the_cluster_counts_no_more() -> None:
    def limited(node: str, limit_ms: int) -> Configs:
        return Configs(resource="broker", name=node, values={"transaction.max.timeout.ms": str(limit_ms)})

    both, one = (Cluster(brokers=tuple(Broker(id=each, fenced=False) for each in ids)) for ids in ((1, 2), (2,)))
    story = Story().tell(both, limited("1", 7_200_000), limited("2", 600_000))
    assert not story.at(700, transaction(0)).open("hanging-transaction")

    assert story.at(710, one, transaction(0)).open("hanging-transaction")


def test_a_transaction_that_is_no_longer_listed_is_over() -> None:
    story = Story().tell(MINUTES, transaction(-700)).at(60, Gone(what="transaction", name="pay-1")).at(90)

    assert story.resolved("hanging-transaction")


def test_a_transaction_that_nobody_speaks_of_is_forgotten() -> None:
    story = Story().tell(MINUTES, transaction(-700)).during(60, 360, 60, always(MINUTES)).at(360)

    assert story.resolved("hanging-transaction")


def failures(count: int, user: str = "ana", address: str = "10.0.0.9") -> LoginFailures:
    return LoginFailures(node=1, user=user, address=address, failed=count)


def test_failed_logins_of_one_user() -> None:
    story = Story().at(0, failures(0)).at(30, failures(19))
    assert not story.open("auth-failures")
    story.at(40, failures(20))

    [finding] = story.open("auth-failures")
    assert finding.sentence == "20 logins for ana from 10.0.0.9 failed in the last minute"
    assert (finding.subject.kind, finding.severity) == ("user", Severity.WARNING)
    story.during(50, 100, 10, always(failures(20)))
    assert story.open("auth-failures")
    story.during(100, 140, 10, always(failures(20)))
    assert story.resolved("auth-failures")


def test_many_users_from_one_address() -> None:
    story = Story()
    for number in range(4):
        story.at(number, failures(0, f"u{number}")).at(number + 0.5, failures(5, f"u{number}"))

    [finding] = story.open("auth-failures")

    assert (finding.subject.kind, finding.subject.name) == ("address", "10.0.0.9")
    assert finding.sentence == "20 logins for u0, u1, u2, u3 from 10.0.0.9 failed in the last minute"


def refusals(count: int, api: str = "Produce") -> Refusals:
    return Refusals(node=1, principal="User:ana", api=api, refused=count)


def test_refused_requests_of_one_principal() -> None:
    story = Story().at(0, refusals(0)).at(0, refusals(0, "Fetch")).at(30, refusals(19))
    assert not story.open("refused-requests")
    story.at(40, refusals(1, "Fetch"))

    [finding] = story.open("refused-requests")
    assert finding.sentence == "20 requests from User:ana were denied in the last minute: Fetch, Produce"
    assert finding.severity is Severity.NOTICE
    story.during(50, 140, 10, always(refusals(19)))
    assert story.resolved("refused-requests")


def test_no_broker_that_counts_logins_no_rule() -> None:
    unseen = {each.rule: each.why for each in Engine().unseen()}

    assert unseen["auth-failures"] == "needs the inspect listener of an ottla broker"
    assert unseen["refused-requests"] == "needs the inspect listener of an ottla broker"


TICK = Coverage(what="topic", visible=True)


def test_a_hole_in_the_observations() -> None:
    story = Story(Engine()).at(0, TICK).at(10, TICK).at(39.999)
    assert not story.open("observer-stale")
    story.at(40)

    [finding] = story.open("observer-stale")
    assert finding.sentence == "No observations since 2026-09-21 14:13:30 UTC"
    assert finding.severity is Severity.NOTICE
    story.at(100, TICK).during(110, 130, 10, always(TICK))
    assert story.open("observer-stale")
    story.at(130, TICK)
    [resolved] = story.resolved("observer-stale")
    assert (resolved.since_ms, resolved.until_ms) == (START_MS + 10_000, START_MS + 100_000)


def test_a_hole_is_seen_afterwards_too() -> None:
    story = Story(Engine())
    story.engine.take(START_MS, TICK)
    changes = story.engine.take(START_MS + 90_000, TICK)

    assert [each.finding.rule for each in changes] == ["observer-stale"]


def test_the_interval_can_be_set() -> None:
    story = Story(Engine({"observer-stale.interval_s": 2})).at(0, TICK).at(6)

    [finding] = story.open("observer-stale")

    assert finding.evidence["thresholds"] == {"interval_s": 2, "intervals": 3}
