"""A cluster of one node with all kinds of groups, to which three things happen: what is found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.health import Engine, Finding, Severity
from ottla.health.facts import (
    Broker,
    Cluster,
    Configs,
    Fact,
    Failed,
    Group,
    Partition,
    ShareOffsets,
    ShareState,
    StateBatch,
    Topic,
)
from tests.unit.health.story import START_MS, Story, group, lag, member, quorum, replica, streams_member

KILL, TAKEN_OVER = 60, 66
DOWN, UP = 90, 105
STORM, CALM = 150, 180
END = 240
POISON = (300, 310)  # offsets
SETTINGS = (
    Configs(resource="group", name="billing", values={"consumer.session.timeout.ms": "6000"}),
    Configs(resource="group", name="risk", values={"share.record.lock.duration.ms": "5000"}),
    Configs(resource="topic", name="orders", values={"min.insync.replicas": "1"}),
)


def stood(second: int) -> int:
    """Work that was done by a second: none while the broker was down."""
    return second - max(0, min(second, UP) - DOWN)


def billing(second: int) -> Group:
    if second < TAKEN_OVER:
        return group("billing", *(member(f"billing-{n}", f"orders-{n}") for n in range(3)))
    first, third = member("billing-0", "orders-0", "orders-1", epoch=2), member("billing-2", "orders-2", epoch=2)
    return group("billing", first, third, epoch=2)


def lags(second: int) -> Iterator[Fact]:
    done = 30 * stood(second)
    dead = 30 * KILL if KILL <= second < TAKEN_OVER + 2 else done
    for number, committed in enumerate((done, dead, done)):
        yield lag("billing", committed, done + 7, number)
    yield lag("audit", done, done)


def deliveries(second: int) -> Iterator[Fact]:
    """Twenty records every two seconds; in the storm, most come back once or twice."""
    at = 10 * stood(second)
    counts = ((12, 2), (8, 1)) if STORM <= second < CALM else ((20, 1),)
    batches, first = [], at
    for many, count in counts:
        batches.append(StateBatch(first=first, last=first + many - 1, state=2, count=count))
        first += many
    if second == 40:
        batches += [StateBatch(first=each, last=each, state=4, count=5) for each in POISON]
    yield ShareState(group="risk", topic="payments", partition=0, start=at, batches=tuple(batches))
    yield ShareOffsets(group="risk", topic="payments", partition=0, start=at, lag=20, high_watermark=at + 20)


def seen(second: int) -> Iterator[Fact]:
    if DOWN <= second < UP:
        yield Failed(what="cluster", error="connection refused", unreachable=True)
        return
    node = Broker(id=1, host="127.0.0.1", port=9092, fenced=False, reachable=True)
    yield Cluster(controller=1, brokers=(node,), finalized={"metadata.version": 30, "group.version": 1} | {
        "transaction.version": 2, "share.version": 1, "streams.version": 1})  # fmt: skip
    yield quorum(replica(1, 100 + second, second), epoch=1 if second < DOWN else 2, watermark=100 + second)
    yield Topic(
        topic="orders", partitions=tuple(Partition(partition=n, leader=1, replicas=(1,), isr=(1,)) for n in range(3))
    )
    yield billing(second)
    yield group("risk", *(member(f"worker-{n}") for n in range(4)), kind="share")
    yield group("audit", member("audit-1", "orders-0"), kind="classic")
    tasks = ("0_0", "0_1"), () if second < 40 else ("0_2",)
    yield group("totals", *(streams_member(f"app-{n}", *each) for n, each in enumerate(tasks)), kind="streams")
    yield from lags(second)
    yield from deliveries(second)


def findings() -> dict[str, Finding]:
    story = Story(Engine()).tell(*SETTINGS)
    for second in range(0, END, 2):
        story.at(second)
        story.tell(*seen(second))
    return {each.rule: each for each in story.engine.findings()}


def test_each_incident_is_found_and_nothing_else() -> None:
    assert set(findings()) == {
        "member-lost",
        "node-unreachable",
        "quorum-leader-changed",
        "redelivery-storm",
        "poison-records",
        "single-voter",
    }


def test_nothing_critical_is_left_open() -> None:
    assert not [each for each in findings().values() if each.is_open and each.severity is Severity.CRITICAL]


def test_the_lost_member_is_named_with_its_partitions() -> None:
    lost = findings()["member-lost"]

    assert (lost.subject.name, lost.evidence["client"], lost.evidence["partitions"]) == (
        "billing", "billing-1", ["orders-1"],
    )  # fmt: skip
    assert 4000 <= lost.evidence["stood_still_ms"] <= 15_000
    assert not lost.is_open


def test_the_restart_is_told_as_silence_and_a_new_epoch_of_the_same_leader() -> None:
    found = findings()
    silent, led = found["node-unreachable"], found["quorum-leader-changed"]

    assert (silent.since_ms, silent.until_ms) == (START_MS + DOWN * 1000, START_MS + (UP - 1) * 1000)
    assert (led.evidence["leader"], led.evidence["rise"], led.evidence["gap_ms"]) == (1, 1, 18_000)


def test_the_storm_has_its_time_and_its_height() -> None:
    storm = findings()["redelivery-storm"]

    assert storm.subject.name == "risk"
    assert (storm.since_ms, storm.until_ms) == (START_MS + STORM * 1000, START_MS + CALM * 1000)
    assert 45 <= storm.evidence["peak_percent"] <= 75


def test_the_poison_records_are_those() -> None:
    assert findings()["poison-records"].evidence["records"] == [["payments", 0, offset] for offset in POISON]
