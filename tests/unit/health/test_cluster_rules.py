"""Rules about partitions, nodes, disks and features."""

from __future__ import annotations

import pytest

from ottla.core.coordinator.partitioner import partition_for
from ottla.core.metadata.features import FEATURES
from ottla.health import Severity
from ottla.health.facts import Broker, Cluster, Configs, Fact, Failed, Gone, LogDir, ShareOffsets, Transaction
from ottla.health.rules.features import DEFAULT_FROM
from ottla.health.rules.partitions import partition_for as health_partition_for
from tests.unit.health.story import START_MS, Case, Facts, Story, always, check, group, partition, topic

GIB = 1024**3
NODES = tuple(Broker(id=node, host="10.0.0.1", port=9090 + node, fenced=False, reachable=True) for node in (1, 2, 3))
LIMITS = {
    "metadata.version": 30,
    "group.version": 1,
    "transaction.version": 2,
    "share.version": 1,
    "streams.version": 1,
}


def cluster(*changed: Broker, without: int | None = None) -> Facts:
    by_id = {each.id: each for each in (*NODES, *changed) if each.id != without}
    return always(Cluster(controller=1, brokers=tuple(by_id.values())))


def disk(usable: float, error: str | None = None) -> Facts:
    return always(LogDir(node=2, path="/data", error=error, total=100 * GIB, usable=round(usable * GIB)))


CASES = [
    Case(
        "offline-partitions",
        always(topic("orders", partition(0, -1, (), elr=(2,)), partition(1), partition(2, -1, (3,)))),
        always(topic("orders", partition(0), partition(1), partition(2))),
        hold=10,
        every=1,
        sentence="2 partitions of orders have had no leader since 2026-09-21 14:13:20 UTC; nodes 2, 3 can lead",
        past="2 partitions of orders had no leader",
        severity=Severity.CRITICAL,
        evidence={"partitions": [0, 2], "could_lead": [2, 3]},
    ),
    Case(
        "offline-partitions",
        always(topic("__remote_log_metadata", partition(0, -1, ()), internal=True)),
        always(topic("__remote_log_metadata", partition(0), internal=True)),
        hold=5,
        every=1,
        sentence="1 partition of __remote_log_metadata has had no leader since 2026-09-21 14:13:20 UTC; "
        "nodes 1, 2, 3 can lead",
        past="1 partition of __remote_log_metadata had no leader",
        severity=Severity.CRITICAL,
    ),
    Case(
        "internal-topic-offline",
        always(topic("__consumer_offsets", partition(0, -1, ()), partition(1))),
        always(topic("__consumer_offsets", partition(0), partition(1))),
        before=(group("a"), group("b"), group("d")),  # hash codes 97, 98, 100: two of them at partition 0
        hold=5,
        every=1,
        sentence="2 groups cannot commit or join: their coordinator's partition is offline",
        past="2 groups could not commit or join: their coordinator's partition was offline",
        severity=Severity.CRITICAL,
        evidence={"hit": ["b", "d"]},
    ),
    Case(
        "internal-topic-offline",
        always(topic("__transaction_state", partition(0, -1, ()))),
        always(topic("__transaction_state", partition(0))),
        before=(Transaction(id="pay", producer=7),),
        hold=5,
        every=1,
        sentence="1 transactional id cannot begin or commit: its coordinator's partition is offline",
        past="1 transactional id could not begin or commit: its coordinator's partition was offline",
        severity=Severity.CRITICAL,
    ),
    Case(
        "internal-topic-offline",
        always(topic("__share_group_state", partition(0, -1, ()), partition(1))),
        always(topic("__share_group_state", partition(0), partition(1))),
        before=(ShareOffsets(group="workers", topic="t", partition=1), ShareOffsets(group="b", topic="t", partition=1)),
        hold=5,
        every=1,
        sentence="1 share group cannot fetch or acknowledge: its coordinator's partition is offline",
        past="1 share group could not fetch or acknowledge: its coordinator's partition was offline",
        severity=Severity.CRITICAL,
    ),
    Case(
        "under-min-isr",
        always(topic("orders", partition(0), partition(1, isr=(1,)))),
        always(topic("orders", partition(0), partition(1, isr=(1, 3)))),
        before=(Configs(resource="topic", name="orders", values={"min.insync.replicas": "2"}),),
        hold=10,
        every=1,
        sentence="orders-1 rejects acks=all writes: 1 of 2 required replicas in sync",
        past="orders-1 rejected acks=all writes: 1 of 2 required replicas in sync",
        severity=Severity.CRITICAL,
        evidence={"missing": [2, 3]},
    ),
    Case(
        "under-replicated",
        always(topic("orders", partition(0, isr=(1, 3)), partition(1, isr=(1, 2)), partition(2))),
        always(topic("orders", partition(0), partition(1, isr=(1, 2), adding=(3,)), partition(2))),
        hold=30,
        sentence="2 partitions of orders are under-replicated; not in sync: nodes 2, 3",
        past="2 partitions of orders were under-replicated; not in sync: nodes 2, 3",
        severity=Severity.WARNING,
    ),
    Case(
        "node-unreachable",
        cluster(Broker(id=2, host="10.0.0.1", port=9092, reachable=False, error="connection refused")),
        cluster(),
        hold=5,
        every=1,
        sentence="Node 2 (10.0.0.1:9092) is unreachable",
        past="Node 2 (10.0.0.1:9092) was unreachable",
        severity=Severity.CRITICAL,
        evidence={"error": "connection refused"},
    ),
    Case(
        "broker-fenced",
        cluster(Broker(id=2, fenced=True)),
        cluster(),
        before=(topic("orders", partition(0, 2), partition(1)), topic("orders", partition(0, 1, (1, 3)), partition(1))),
        hold=5,
        every=1,
        sentence="Node 2 is fenced; 1 leader moved, 1 partition under-replicated",
        past="Node 2 was fenced; 1 leader moved, 1 partition under-replicated",
        severity=Severity.CRITICAL,
    ),
    Case(
        "broker-fenced",
        cluster(without=3),
        cluster(),
        before=(topic("orders", partition(0)),),
        hold=5,
        every=1,
        sentence="Node 3 is fenced; 0 leaders moved, 0 partitions under-replicated",
        past="Node 3 was fenced; 0 leaders moved, 0 partitions under-replicated",
        severity=Severity.CRITICAL,
    ),
    Case(
        "log-dir-offline",
        disk(50, "KAFKA_STORAGE_ERROR"),
        disk(50),
        hold=0,
        every=10,
        sentence="Node 2: log directory /data is offline",
        past="Node 2: log directory /data was offline",
        severity=Severity.CRITICAL,
    ),
    Case(
        "disk-filling",
        disk(9.9),
        disk(10),
        hold=0,
        every=10,
        sentence="Node 2 has 9.9 GiB free in /data, no growth in the last hour",
        past="Node 2 had 9.9 GiB free in /data",
        severity=Severity.WARNING,
    ),
    Case(
        "disk-filling",
        disk(2.9),
        disk(10),
        hold=0,
        every=10,
        sentence="Node 2 has 2.9 GiB free in /data, no growth in the last hour",
        past="Node 2 had 2.9 GiB free in /data",
        severity=Severity.CRITICAL,
    ),
    Case(
        "features-not-finalised",
        always(Cluster(finalized={**LIMITS, "share.version": 0})),
        always(Cluster(finalized=LIMITS)),
        hold=0,
        sentence="share.version is 0, but all nodes support 1: share groups are disabled",
        past="share.version was 0, but all nodes supported 1",
        severity=Severity.NOTICE,
    ),
    Case(
        "features-not-finalised",
        always(Cluster(finalized=LIMITS, brokers=(Broker(id=1, supported={"metadata.version": (7, 31)}),))),
        always(Cluster(finalized=LIMITS, brokers=(Broker(id=1, supported={"metadata.version": (7, 30)}),))),
        hold=24 * 3600,
        every=10,
        sentence="metadata.version is 30, but all nodes support 31: features of newer versions are disabled",
        past="metadata.version was 30, but all nodes supported 31",
        severity=Severity.NOTICE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


def test_a_reassignment_that_adds_a_replica_is_no_loss_of_copies() -> None:
    story = Story().during(0, 60, 5, always(topic("orders", partition(0, isr=(1, 2), adding=(3,)))))

    assert not story.open("under-replicated")


def test_partitions_that_take_turns_at_being_offline_are_none_for_long() -> None:
    def flapping(second: int) -> tuple[Fact, ...]:
        down = second // 5 % 2
        return (topic("orders", partition(0, -1 if down else 1), partition(1, 1 if down else -1)),)

    assert not Story().during(0, 60, 5, flapping).open("offline-partitions")


def test_min_isr_above_the_number_of_replicas_counts_as_that_number() -> None:
    configs = Configs(resource="topic", name="orders", values={"min.insync.replicas": "4"})
    story = Story().tell(configs).during(0, 30, 5, always(topic("orders", partition(0))))

    assert not story.open("under-min-isr")


def test_when_no_node_answers_all_that_were_listed_are_unreachable() -> None:
    silent = always(Failed(what="cluster", error="connection refused", unreachable=True))
    story = Story().tell(*cluster()(0)).during(1, 7, 1, silent)

    assert [each.subject.name for each in story.open("node-unreachable")] == ["1", "2", "3"]
    assert not story.open("broker-fenced")
    story.during(7, 9, 1, cluster()).at(60)
    assert not story.open("node-unreachable")


SILENT = cluster(Broker(id=2, host="10.0.0.1", port=9092, reachable=False))


def test_a_short_silence_soon_after_a_long_one_does_not_make_that_longer() -> None:
    story = Story().during(0, 20, 1, SILENT).during(20, 40, 1, cluster())
    story.during(40, 42, 1, SILENT).during(42, 90, 1, cluster())

    [finding] = story.resolved("node-unreachable")
    assert (finding.since_ms, finding.until_ms) == (START_MS, START_MS + 19_000)


def test_a_long_silence_soon_after_a_long_one_belongs_to_it() -> None:
    story = Story().during(0, 20, 1, SILENT).during(20, 40, 1, cluster())
    story.during(40, 50, 1, SILENT).during(50, 90, 1, cluster())

    [finding] = story.resolved("node-unreachable")
    assert (finding.since_ms, finding.until_ms, finding.times) == (START_MS, START_MS + 49_000, 1)


def test_a_deleted_topic_has_no_partitions_to_miss() -> None:
    story = Story().during(0, 15, 5, always(topic("orders", partition(0, -1, ()))))
    assert story.open("offline-partitions")

    story.at(16, Gone(what="topic", name="orders")).at(46)

    assert not story.open("offline-partitions")


def test_a_disk_that_fills_within_a_day_at_the_trend_of_an_hour() -> None:
    def filling(second: int) -> tuple[Fact, ...]:
        return (LogDir(node=2, path="/data", total=100 * GIB, usable=round((50 - 3 * second / 3600) * GIB)),)

    story = Story().during(0, 3200, 60, filling)
    assert not story.open("disk-filling")
    story.during(3240, 3661, 60, filling)

    [finding] = story.open("disk-filling")
    assert finding.sentence == "Node 2 has 47.0 GiB free in /data, full in about 15 h 39 min"
    assert finding.tier == "S"


@pytest.mark.parametrize(
    ("usable", "severity"), [(10, None), (9.99, Severity.WARNING), (3, Severity.WARNING), (2.99, Severity.CRITICAL)]
)
def test_how_much_of_a_disk_must_be_left(usable: float, severity: Severity | None) -> None:
    found = Story().tell(*disk(usable)(0)).open("disk-filling")

    assert [each.severity for each in found] == ([severity] if severity else [])


@pytest.mark.parametrize(("hours", "found"), [(23.9, 1), (24.1, 0)])
def test_a_disk_is_filling_if_it_is_full_within_a_day(hours: float, found: int) -> None:
    """So many hours are left at the end of one hour."""

    def filling(second: int) -> tuple[Fact, ...]:
        usable = 50 * GIB * (1 - second / 3600 / (hours + 1))
        return (LogDir(node=2, path="/data", total=100 * GIB, usable=round(usable)),)

    assert len(Story().during(0, 3601, 60, filling).open("disk-filling")) == found


def test_a_feature_is_not_called_supported_when_one_node_does_not_support_it() -> None:
    old, new = {"share.version": (0, 0)}, {"share.version": (0, 1)}
    brokers = Broker(id=1, supported=old), Broker(id=2, supported=new)
    story = Story().tell(Cluster(finalized={**LIMITS, "share.version": 0}, brokers=brokers))

    assert not story.open("features-not-finalised")


def test_the_levels_of_new_clusters_are_those_that_the_controller_knows() -> None:
    for name, steps in DEFAULT_FROM.items():
        level = max(FEATURES[name])
        assert steps[0] == (FEATURES[name][level].default_from, level)


@pytest.mark.parametrize("name", ["a", "billing", "word-totals", "ü🙂", "polygenelubricants", "x" * 200])
def test_coordinators_are_where_the_broker_puts_them(name: str) -> None:
    assert health_partition_for(name, 50) == partition_for(name, 50)


def test_times_are_those_of_the_facts() -> None:
    story = Story().during(0, 15, 5, always(topic("orders", partition(0, -1, ()))))

    assert story.open("offline-partitions")[0].since_ms == START_MS
