"""Every command that a finding recommends is run on a cluster that has what the finding speaks of, and shows it.

`CASES` has the facts of which each rule speaks, as they are on that cluster, and for each command in turn what its
output has to have. A new rule has no case, and fails until it has one.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import ottla.health.rules
from ottla.cli import run
from ottla.health import RULES, Engine, Finding, phrases
from ottla.health.facts import (
    Broker,
    Cluster,
    Configs,
    Fact,
    Group,
    GroupMember,
    LogDir,
    LoginFailures,
    Refusals,
    ShareMetrics,
    ShareOffsets,
    ShareState,
    ShareWindow,
    StateBatch,
    Subtopology,
    Tasks,
    Transaction,
    TransactionPartition,
)
from tests.component.cli.trouble import (
    FAILED_DIRECTORY,
    IDLE,
    RISK,
    STOPPED,
    TILLS,
    TOTALS,
    Trouble,
    leaderless,
    sick_cluster,
    trouble,
)
from tests.component.client.fake import FakeCluster
from tests.unit.health.story import Story, group, lag, member, partition, quorum, replica, topic

Capture = pytest.CaptureFixture[str]
Told = Iterable[tuple[float, Fact]]
"""Facts with the seconds at which they are told."""
START_MS: Final = time.time_ns() // 1_000_000 - 3_600_000
"""Some commands look for what was written since a moment, and the broker of these tests writes now."""
RULE_FILES: Final = Path(ottla.health.rules.__file__).parent
COMMAND: Final = re.compile(r"\bottla ((?:[a-z][a-z-]+ ?)+)")


class Case(NamedTuple):
    facts: Callable[[], Told]
    shows: tuple[tuple[str, ...], ...]
    """Of each command in turn, what stands in a line of its output; runs of spaces are one."""
    where: str = "live"
    more: str = ""
    """What a person adds: the answer to a question, or an end to what does not end by itself."""
    code: int = 0


def during(end: int, every: int, *facts: Fact) -> Callable[[], Told]:
    """The same facts again and again."""
    return lambda: [(second, fact) for second in range(0, end + 1, every) for fact in facts]


# --- partitions, nodes, quorum ----------------------------------------------------------------------------------------

SICK_ORDERS: Final = topic("orders", partition(0, isr=(1,)), partition(1, leader=-1, isr=(), elr=(2,)))
SICK_OFFSETS: Final = topic(
    "__consumer_offsets", partition(0), partition(1, leader=-1, isr=(), elr=(2,)), internal=True
)
NODES: Final = Cluster(
    controller=1,
    brokers=(
        Broker(id=1, host="127.0.0.1", port=9092, fenced=False, reachable=True),
        Broker(id=2, host="127.0.0.1", port=9093, fenced=True, reachable=True),
        Broker(id=4, host="127.0.0.1", port=1, fenced=False, reachable=False, error="refused"),
    ),
)
QUIET_VOTERS: Final = (
    replica(1, 1_000, 100), replica(2, 1_000, 100), replica(3, 400, 10), replica(4, 900, 80),
)  # fmt: skip


def votes(*nodes: int, leader: int = 1, epoch: int = 8, watermark: int = 1_000) -> Fact:
    return quorum(*(replica(node, 1_000, 100) for node in nodes), leader=leader, epoch=epoch, watermark=watermark)


def elections() -> Told:
    """Of the cluster whose leader is node 1 in epoch 1."""
    return [(2 * epoch, votes(1, epoch=epoch - 2)) for epoch in range(4)]


# --- groups -----------------------------------------------------------------------------------------------------------

HELD_UP: Final = group(
    TILLS,
    member("till-1", "orders-0", "orders-1", target=("orders-0",), epoch=2, instance="first"),
    member("till-2", target=("orders-1",), epoch=3),
    epoch=3,
)
OFFSETS_TOPIC: Final = topic("__consumer_offsets", partition(0), internal=True)


def growing() -> Told:
    """Less is read than written, most of it in orders-1."""
    for minute in range(7):
        done, end = 100 * minute, 400 * minute + 1_000
        yield 60 * minute, HELD_UP
        yield 60 * minute, lag(TILLS, end, end, number=0)
        yield 60 * minute, lag(TILLS, done, end, number=1)


def growing_share() -> Told:
    for minute in range(7):
        start, end = 100 * minute, 400 * minute + 1_000
        yield 60 * minute, group(RISK, member("worker"), kind="share")
        yield (
            60 * minute,
            ShareOffsets(group=RISK, topic="payments", partition=1, start=start, lag=end - start, high_watermark=end),
        )


def standing_still() -> Told:
    for second in range(0, 400, 10):
        yield second, HELD_UP
        yield second, lag(TILLS, 3, 10, number=1)


def read_by_nobody() -> Told:
    for second in range(0, 400, 10):
        yield second, group(TILLS, member("till-1"))
        yield second, lag(TILLS, 3, 10, number=1)


def deleted_soon() -> Told:
    for minute in range(20):
        yield 60 * minute, lag(IDLE, 2_000, 9_000, start=60 * minute)


def deleted(group_fact: Group) -> Callable[[], Told]:
    return lambda: [(0, group_fact), (0, lag(group_fact.group, 2, 10, start=5))]


def forgotten() -> Told:
    for second in range(0, 1_300, 60):
        yield second, group(IDLE, kind="classic")
        yield second, lag(IDLE, 2, 10 + second)


def climbing() -> Told:
    yield 0, OFFSETS_TOPIC
    for number in range(7):
        yield 20 * number, group(TILLS, member("till-1"), epoch=number + 1)


def rejoining() -> Told:
    for number in range(12):
        yield 10 * number, group(TILLS, member(f"till-{number}"))


def dying(kind: str) -> Callable[[], Told]:
    def facts() -> Told:
        yield 0, group(TILLS, member("till-1", "orders-0"), member("till-2", "orders-1"), kind=kind)
        for second in range(0, 90, 5):
            yield second, lag(TILLS, 10 if second < 30 else 10 + second, 10 + second, number=0)
            yield second, lag(TILLS, min(second, 30), 10 + second, number=1)
        yield 90, group(TILLS, member("till-1", "orders-0"), kind=kind)
        yield 95, lag(TILLS, 30, 110, number=1)

    return facts


def fighting() -> Told:
    for number in range(5):
        yield 10 * number, group(TILLS, GroupMember(member=f"m{number}", client="till-1", instance="first", epoch=1))


# --- streams ----------------------------------------------------------------------------------------------------------


def totals(*members: GroupMember, **more: object) -> Group:
    return group(TOTALS, *members, kind="streams", **more)


def not_ready(name: str, *sources: str) -> Group:
    parts = (Subtopology(id="0", source=sources),)
    return group(name, GroupMember(member="m", client="worker"), kind="streams", state="NotReady", subtopologies=parts)


HALF_WAY: Final = totals(
    GroupMember(member="totals-1", client="worker", epoch=1, topology_epoch=1),
    GroupMember(member="totals-2", client="worker", epoch=1, topology_epoch=0),
    topology_epoch=1,
)
WITH_PLUGIN: Final = Configs(
    resource="broker", name="1", values={"group.streams.topology.description.plugin.class": "some.Plugin"}
)
WARMING: Final = totals(
    GroupMember(
        member="totals-1", client="worker", epoch=1, tasks=Tasks(warmup=("0_1",)), task_offsets={"0_1": 500},
        task_end_offsets={"0_1": 1_000},
    ),
)  # fmt: skip


# --- share ------------------------------------------------------------------------------------------------------------

WORKERS: Final = group(RISK, member("worker"), kind="share")
PAYMENTS_1: Final = ShareOffsets(group=RISK, topic="payments", partition=1, start=4, lag=1, high_watermark=10)


def window(start: int, end: int, first_count: int | None = None) -> Fact:
    return ShareWindow(group=RISK, topic="payments", partition=1, start=start, end=end, first_count=first_count)


def archived(deliveries: int) -> Callable[[], Told]:
    def facts() -> Told:
        for snapshot, batches in ((True, ()), (False, (StateBatch(first=3, last=3, state=4, count=deliveries),))):
            record = "ShareSnapshot" if snapshot else "ShareUpdate"
            yield 0, ShareState(group=RISK, topic="payments", partition=1, record=record, start=0, batches=batches)

    return facts


def given_up_with_dead_letters() -> Told:
    yield 0, Cluster(finalized={"share.version": 2})
    yield from archived(5)()


def counted(**per_second: int) -> Callable[[], Told]:
    """Counters of a broker that grow by so much in a second."""

    def facts() -> Told:
        for second in range(0, 70, 5):
            counts = {name: count * second for name, count in per_second.items()}
            yield second, ShareMetrics(group=RISK, node=1, **counts)

    return facts


def rejected() -> Told:
    """Told of an hour ago, in which the broker of these tests has not written yet; what it wrote since then counts."""
    yield 0, ShareMetrics(group=RISK, node=1)
    yield 10, ShareMetrics(group=RISK, node=1, rejected=1, delivered=20)


# --- access -----------------------------------------------------------------------------------------------------------


def open_transaction(*partitions: TransactionPartition) -> Callable[[], Told]:
    return lambda: [(0, Transaction(id="loader", producer=0, started=START_MS - 86_400_000, partitions=partitions))]


def failed_logins() -> Told:
    for second in range(0, 60, 10):
        yield second, LoginFailures(node=1, user="eve", address="10.0.0.9", failed=10 * second)


def refused_requests() -> Told:
    for second in range(0, 60, 10):
        yield second, Refusals(node=1, principal="User:eve", api="Produce", refused=10 * second)


def open_listener() -> Told:
    yield 0, Configs(resource="broker", name="1", values={"listeners": "PLAINTEXT://:9092"})


LEDGER: Final = TransactionPartition(topic="ledger", partition=0)
STATUS: Final = "leader 1 epoch 8 high watermark 900"
HELD_UP_LINE: Final = "AAAAAAAAAAAAAAAAAAAAAQ first till-1"
OFFSETS_1: Final = "orders 1 3 10 7"
RETENTION: Final = ("retention.ms 604800000", "retention.bytes -1")
IN_FLIGHT: Final = ("payments 1 3 3 ARCHIVED 1", "payments 1 4 4 AVAILABLE")

CASES: Final[dict[str, list[Case]]] = {
    "offline-partitions": [
        Case(during(20, 5, SICK_ORDERS), (("orders id", "1 - 8 2,5"),), "sick"),
    ],
    "internal-topic-offline": [
        Case(during(20, 5, SICK_OFFSETS), (("__consumer_offsets id", "1 - 8 2,5"),), "sick"),
    ],
    "under-min-isr": [
        Case(
            during(20, 5, Configs(resource="topic", name="orders", values={"min.insync.replicas": "2"}), SICK_ORDERS),
            (("orders id", "0 1 7 1,2,5 1 "),),
            "sick",
        ),
    ],
    "under-replicated": [Case(during(60, 5, SICK_ORDERS), (("orders id", "0 1 7 1,2,5 1 "),), "sick")],
    "node-unreachable": [Case(during(20, 5, NODES), (("4 127.0.0.1:1 - unreachable",),), "sick")],
    "broker-fenced": [
        Case(during(20, 5, SICK_ORDERS, NODES), (("2 127.0.0.1:", "fenced"),), "sick"),
        Case(
            during(20, 5, topic("orders", partition(0)), Cluster(controller=1, brokers=(Broker(id=1), Broker(id=2)))),
            (("5 - - not listed",),),
            "sick",
        ),
    ],
    "log-dir-offline": [
        Case(
            during(5, 5, LogDir(node=3, path=FAILED_DIRECTORY, error="KAFKA_STORAGE_ERROR")),
            ((f"serves {FAILED_DIRECTORY}", "failed: KAFKA_STORAGE_ERROR"),),
            "sick",
        ),
    ],
    "disk-filling": [
        Case(
            during(5, 5, LogDir(node=1, path="/data/disk1", total=1000 << 30, usable=20 << 30)),
            (("1 127.0.0.1:", "serves /data/disk1 0 B 20.0 GiB"), ("orders",)),
            "sick",
        ),
        Case(during(5, 5, LogDir(node=1, path="/d", total=1000, usable=20)), (("serves",), ("payments 2 1 20",))),
    ],
    "no-controller": [Case(during(20, 5, votes(1, 2, 3, leader=-1)), (("no leader",),), "leaderless")],
    "quorum-lost": [
        Case(
            during(20, 5, quorum(*QUIET_VOTERS, epoch=8)),
            ((STATUS, "voters 2/4 healthy", "node 3 behind", "node 4 behind"),),
            "sick",
        ),
    ],
    "no-majority-margin": [
        Case(
            during(20, 5, quorum(*QUIET_VOTERS[:3], epoch=8)),
            (("voters 2/4 healthy", "node 3 behind"),),
            "sick",
        ),
    ],
    "voter-lagging": [
        Case(during(20, 5, quorum(*QUIET_VOTERS, epoch=8)), (("node 3 behind 600 records, 90 s",),), "sick"),
    ],
    "high-watermark-stuck": [
        Case(
            during(20, 5, quorum(*QUIET_VOTERS, epoch=8, watermark=900)),
            (("high watermark 900", "node 4 behind 100 records"),),
            "sick",
        ),
    ],
    "quorum-leader-changed": [Case(elections, (("leader 1 epoch 1",),))],
    "election-storm": [Case(elections, (("leader 1 epoch 1",),))],
    "even-voters": [Case(during(5, 5, votes(1, 2, 3, 4)), (("1 leader", "2 voter", "3 voter", "4 voter"),), "sick")],
    "single-voter": [
        Case(during(5, 5, votes(1)), (("node 1 leads", "1 leader"),)),
        Case(during(5, 5, votes(1)), (("6 observer", "BgYGBgYGBgYGBgYGBgYGBg"),), "sick"),
    ],
    "features-not-finalised": [
        Case(
            during(
                5,
                5,
                Cluster(
                    finalized={"metadata.version": 24, "group.version": 1},
                    brokers=(Broker(id=1, supported={"transaction.version": (0, 2)}),),
                ),
            ),
            (("would upgrade transaction.version to 2",),),
            code=2,
        ),
    ],
    "lag-growing": [
        Case(growing, ((f"{TILLS} consumer group", "till-1", "till-2"), (OFFSETS_1, "till-1"))),
        Case(growing_share, ((f"{RISK} share group", "worker"), ("payments 1",))),
    ],
    "lag-stuck": [
        Case(standing_still, ((OFFSETS_1, "till-1"),)),
        Case(read_by_nobody, ((OFFSETS_1,),)),
    ],
    "lag-near-retention": [Case(deleted_soon, (RETENTION,))],
    "offset-lost": [
        Case(deleted(group(IDLE, kind="classic")), (RETENTION, ("orders 0 2 5",))),
        Case(deleted(HELD_UP), (RETENTION, ("orders 0 10 10", "till-1"))),
        Case(deleted(totals(GroupMember(member="totals-1"))), (RETENTION, ("orders 0",))),
    ],
    "lag-no-members": [Case(forgotten, ((f"would delete group {IDLE} and its offsets",),), code=2)],
    "epochs-climb": [Case(climbing, (('"ConsumerGroupMetadata"', f'"groupId": "{TILLS}"', '"epoch": 3'),))],
    "member-churn": [Case(rejoining, ((TILLS, "till-1", "till-2"),))],
    "member-lost": [
        Case(dying("consumer"), (("consumer.session.timeout.ms 600000",),)),
        Case(dying("classic"), ()),
    ],
    "member-stuck-revoking": [
        Case(during(60, 5, HELD_UP), ((HELD_UP_LINE, "delays the rebalance", "TO REVOKE"),)),
    ],
    "member-waiting": [Case(during(60, 5, HELD_UP), (("till-2", "waiting for orders:", "TO ASSIGN"),))],
    "static-member-duplicate": [Case(fighting, ((HELD_UP_LINE,),))],
    "streams-not-ready": [
        Case(
            during(20, 5, topic("lines", partition(0)), not_ready(STOPPED, "nowhere")),
            ((f"{STOPPED} is NotReady", "0 nowhere"),),
        ),
        Case(
            during(
                20,
                5,
                topic("left", partition(0)),
                topic("right", partition(0), partition(1)),
                not_ready(TOTALS, "left", "right"),
            ),
            (("left id", "right id", "1 1 0"),),
        ),
    ],
    "topology-mismatch": [
        Case(during(90, 5, HALF_WAY), (("topology epoch 1", "totals-2 process of totals-2 worker /127.0.0.1 1 0"),)),
    ],
    "topology-description-missing": [
        Case(
            during(150, 5, WITH_PLUGIN, totals(GroupMember(member="m"), topology_description="not_stored")),
            ((f"group {TOTALS}: the cluster has no topology description",),),
            code=2,
        ),
    ],
    "topology-description-failed": [
        Case(
            during(5, 5, totals(GroupMember(member="m"), topology_description="error")),
            ((f"group {TOTALS}: the cluster's plugin failed",),),
            "sick",
            code=2,
        ),
    ],
    "warmup-stalled": [Case(during(700, 60, WARMING), (("0_1 warmup running worker p - 500",),), "sick")],
    "share-stalled-by-record": [
        Case(during(120, 5, window(4, 9, 5), PAYMENTS_1), (("1 4 2", "payments-1 record 4"), IN_FLIGHT)),
    ],
    "share-start-not-moving": [Case(during(310, 10, WORKERS, PAYMENTS_1), (IN_FLIGHT,))],
    "share-window-full": [Case(during(120, 5, window(3, 2_010)), (IN_FLIGHT,))],
    "redelivery-storm": [
        Case(counted(delivered=10, redelivered=8), ((f"{RISK} Stable", "worker", "payments 1"),)),
        Case(
            counted(delivered=10, redelivered=8, lock_expiries=1),
            ((f"{RISK} Stable", "worker"), ("share.record.lock.duration.ms 600000",)),
        ),
    ],
    "poison-records": [
        Case(archived(5), (("1 3 2", "payments-1 record 3"), ("share.version 1",))),
        Case(given_up_with_dead_letters, (("1 3 2", "payments-1 record 3"),)),
    ],
    "rejected-records": [
        Case(archived(1), (("1 3 2", "payments-1 record 3"),)),
        Case(rejected, ((f'"groupId": "{RISK}"', '"firstOffset": 3, "lastOffset": 3, "deliveryState": 4'),)),
    ],
    "lock-expiries": [Case(counted(delivered=10, lock_expiries=1), (("share.record.lock.duration.ms 600000",),))],
    "hanging-transaction": [
        Case(
            open_transaction(TransactionPartition(topic="ledger", partition=0, first_offset=0)),
            (("would abort the transaction of producer 0 at offset 0 of ledger-0",),),
            code=2,
        ),
        Case(open_transaction(LEDGER), (("would abort the transaction of producer 0", "ledger-0"),), code=2),
        Case(open_transaction(), (("ledger 0 0 0 0", "loader"),)),
        Case(
            open_transaction(*[LEDGER] * 4),
            (*[("would abort the transaction of producer 0",)] * 3, ("ledger 0 0 0 0", "loader")),
            code=2,
        ),
    ],
    "auth-failures": [Case(failed_logins, ())],
    "refused-requests": [Case(refused_requests, ())],
    "open-listener": [Case(open_listener, ())],
    "observer-stale": [
        Case(during(0, 1, votes(1)), (("writing samples to topic ottla.observations",),), more="--for 1s")
    ],
}


# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live() -> Iterator[Trouble]:
    with trouble() as found:
        yield found


@pytest.fixture(scope="module")
def sick() -> Iterator[FakeCluster]:
    with sick_cluster() as found:
        yield found


@pytest.fixture(scope="module")
def without_leader() -> Iterator[FakeCluster]:
    with sick_cluster() as found:
        for broker in found.brokers.values():
            broker.on("DescribeQuorum", leaderless)
        yield found


@pytest.fixture(scope="module")
def places(live: Trouble, sick: FakeCluster, without_leader: FakeCluster) -> dict[str, str]:
    return {
        "live": live.bootstrap_servers,
        "sick": sick.bootstrap_servers,
        "leaderless": without_leader.bootstrap_servers,
    }


def finding_of(rule: str, case: Case) -> Finding:
    story = Story(Engine(), START_MS)
    for second, fact in case.facts():
        story.at(second, fact)
    story.at(story.second + 60)
    found = [each.finding for each in story.changes if each.finding.rule == rule]
    assert found, f"{rule} says nothing of these facts"
    return found[-1]


def commands_of(finding: Finding) -> list[str]:
    return [step.command for step in finding.next if isinstance(step.command, str)]


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize(
    ("rule", "case"),
    [
        pytest.param(rule, case, id=f"{rule}-{number}")
        for rule, cases in CASES.items()
        for number, case in enumerate(cases)
    ],
)
def test_the_commands_of_a_finding_show_what_it_speaks_of(
    rule: str, case: Case, places: dict[str, str], capsys: Capture
) -> None:
    commands = commands_of(finding_of(rule, case))
    assert len(commands) == len(case.shows), commands
    for command, expected in zip(commands, case.shows, strict=True):
        program, *words = shlex.split(command)
        assert program == "ottla"
        capsys.readouterr()
        code = run([*words, *case.more.split(), "--bootstrap", places[case.where]])
        said = "\n".join(" ".join(line.split()) for stream in capsys.readouterr() for line in stream.splitlines())
        assert code in (0, case.code), f"{command}\n{said}"
        missing = [text for text in expected if text not in said]
        assert not missing, f"{command}\n{said}"


def recommended() -> set[tuple[str, ...]]:
    """The words with which commands begin in the rules, and in what they are worded with."""
    texts = [path.read_text(encoding="utf-8") for path in (*RULE_FILES.glob("*.py"), Path(phrases.__file__))]
    return {tuple(each[1].split()) for text in texts for each in COMMAND.finditer(text)}


def test_every_command_that_stands_in_a_rule_is_run() -> None:
    """Whatever branch of a rule it stands in."""
    ran = [
        shlex.split(command)[1:]
        for rule, cases in CASES.items()
        for case in cases
        for command in commands_of(finding_of(rule, case))
    ]
    assert ("quorum", "features", "upgrade") in recommended()
    assert [words for words in recommended() if not any(tuple(each[: len(words)]) == words for each in ran)] == []
