"""What an observer says agrees with what others say of the same cluster: Apache Kafka's tools, and librdkafka."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.health.facts import Cluster, Group, Lag, LogDir, Quorum, ShareOffsets, Topic, Transaction
from ottla.observe.kinds import INTERVALS_S
from tests.interop.apache import tool
from tests.interop.node.brokers import APACHE, Node
from tests.interop.observe.watching import Watched
from tests.interop.spark import group_history as history

PACKAGE = "org.apache.kafka.tools"
TIMEOUT_S = 30
FIRST_HEADINGS = ("GROUP", "TransactionalId")
FROM_4_4 = {"topology-description-missing", "topology-description-failed", "warmup-stalled"}
"""Rules for which Apache Kafka 4.3 does not tell enough."""


def table(broker: Node, main: str, *words: str) -> list[dict[str, str]]:
    """The rows that a tool prints, by their headings."""
    said = tool(f"{PACKAGE}.{main}", "--bootstrap-server", broker.bootstrap_servers, *words, check=False)
    lines = [re.split(r"\s{2,}|\t| (?=\S)", line.strip()) for line in said.splitlines() if line.strip()]
    heading = next(number for number, line in enumerate(lines) if line[0] in FIRST_HEADINGS)
    return [dict(zip(lines[heading], line, strict=False)) for line in lines[heading + 1 :]]


@pytest.fixture(scope="module")
def admin(broker: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def test_every_kind_is_sampled_and_nothing_fails(watched: Watched):
    assert watched.errors() == set()
    assert set(INTERVALS_S) - {each.kind for each in watched.samples} == {
        "access",
        "share_state",
        "share_metrics",
        "share_window",
    }


def test_kinds_of_groups(broker: Node, watched: Watched):
    rows = table(broker, "GroupsCommand", "--list")
    types = {row["GROUP"]: row["TYPE"].lower() for row in rows}
    assert {each.group: each.type for each in watched.facts(Group)} == types
    assert set(types.values()) == {"classic", "consumer", "share", "streams"}


def test_committed_offsets_and_lag(broker: Node, watched: Watched):
    lags = {(each.topic, each.partition): each for each in watched.facts(Lag) if each.group == history.SIMPLE}
    rows = table(broker, "consumer.group.ConsumerGroupCommand", "--describe", "--group", history.SIMPLE)
    told = {(row["TOPIC"], int(row["PARTITION"])): row for row in rows if row["GROUP"] == history.SIMPLE}
    assert lags.keys() == told.keys()
    for place, row in told.items():
        seen = lags[place]
        assert seen.committed is not None
        assert seen.high_watermark is not None
        assert (seen.committed, seen.high_watermark) == (int(row["CURRENT-OFFSET"]), int(row["LOG-END-OFFSET"]))
        assert seen.high_watermark - seen.committed == int(row["LAG"])


def test_offsets_as_librdkafka_sees_them(admin: AdminClient, watched: Watched):
    asked = [ConsumerGroupTopicPartitions(history.SIMPLE)]
    told = admin.list_consumer_group_offsets(asked)[history.SIMPLE].result(TIMEOUT_S).topic_partitions
    seen = {(each.topic, each.partition): each for each in watched.facts(Lag) if each.group == history.SIMPLE}
    assert {(each.topic, each.partition): each.offset for each in told} == {
        at: each.committed for at, each in seen.items()
    }
    for spec, field in ((OffsetSpec.earliest(), "log_start"), (OffsetSpec.latest(), "high_watermark")):
        ends = admin.list_offsets({At(*place): spec for place in seen})
        for place, future in ends.items():
            assert getattr(seen[place.topic, place.partition], field) == future.result(TIMEOUT_S).offset


def test_members_as_librdkafka_sees_them(admin: AdminClient, watched: Watched):
    told = admin.describe_consumer_groups([history.CONSUMER])[history.CONSUMER].result(TIMEOUT_S)
    (group,) = {each.group: each for each in watched.facts(Group) if each.group == history.CONSUMER}.values()
    assert group.state.lower() == told.state.name.lower()
    assert group.coordinator == told.coordinator.id
    assert {each.member for each in group.members} == {each.member_id for each in told.members}
    assert {(each.topic, number) for each in group.members[0].assigned for number in each.partitions} == {
        (each.topic, each.partition) for each in told.members[0].assignment.topic_partitions
    }


def test_share_groups(broker: Node, watched: Watched):
    rows = table(broker, "consumer.group.ShareGroupCommand", "--describe", "--group", history.IDLE_SHARE)
    told = {(row["TOPIC"], int(row["PARTITION"])): row for row in rows if row["GROUP"] == history.IDLE_SHARE}
    seen = {
        (each.topic, each.partition): each for each in watched.facts(ShareOffsets) if each.group == history.IDLE_SHARE
    }
    assert {place: (each.start, each.lag) for place, each in seen.items()} == {
        place: (int(row["START-OFFSET"]), int(row["LAG"])) for place, row in told.items()
    }


def test_streams_groups(broker: Node, watched: Watched):
    (group,) = {each.group: each for each in watched.facts(Group) if each.type == "streams"}.values()
    words = ("--describe", "--group", history.STREAMS, "--members", "--verbose")
    said = tool(f"{PACKAGE}.streams.StreamsGroupCommand", "--bootstrap-server", broker.bootstrap_servers, *words)
    (member,) = group.members
    row = next(line.split() for line in said.splitlines() if member.member in line)
    assert str(group.assignment_epoch) in row
    assert member.tasks is not None
    assert member.tasks.active == ("0_0", "0_1")
    assert any(word.startswith("0:") for word in row), row
    state = table(broker, "streams.StreamsGroupCommand", "--describe", "--group", history.STREAMS, "--state")
    assert state[0]["STATE"] == group.state


def test_the_quorum(broker: Node, watched: Watched):
    (*_, quorum) = watched.facts(Quorum)
    said = tool(
        f"{PACKAGE}.MetadataQuorumCommand", "--bootstrap-server", broker.bootstrap_servers, "describe", "--status"
    )
    told = dict(re.findall(r"^(\w+):\s+(\S+)$", said, re.MULTILINE))
    assert (quorum.leader, quorum.leader_epoch) == (int(told["LeaderId"]), int(told["LeaderEpoch"]))
    assert (quorum.high_watermark or 0) <= int(told["HighWatermark"])
    assert [each.role for each in quorum.replicas] == ["voter"]


def test_nodes_topics_and_disks(broker: Node, admin: AdminClient, watched: Watched):
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    (*_, cluster) = watched.facts(Cluster)
    assert [(each.id, each.host, each.port, each.reachable, each.fenced) for each in cluster.brokers] == [
        (each.id, each.host, each.port, True, False) for each in metadata.brokers.values()
    ]
    topics = {each.topic: each for each in watched.facts(Topic)}
    assert topics.keys() == metadata.topics.keys()
    for name, told in metadata.topics.items():
        assert {each.partition: (each.leader, each.replicas, each.isr) for each in topics[name].partitions} == {
            number: (each.leader, tuple(each.replicas), tuple(each.isrs)) for number, each in told.partitions.items()
        }
    disks = {each.path: each for each in watched.facts(LogDir)}
    assert list(disks) == [str(broker.data_dir)]
    assert all(each.error is None and each.total and each.usable and each.size for each in disks.values())


def test_transactions(broker: Node, watched: Watched):
    rows = table(broker, "TransactionsCommand", "list")
    ongoing = {row["TransactionalId"]: int(row["ProducerId"]) for row in rows if row["TransactionState"] == "Ongoing"}
    assert {each.id: each.producer for each in watched.facts(Transaction)} == ongoing == {"tx-open": ongoing["tx-open"]}


def test_the_rules_find_nothing_wrong(kind: str, watched: Watched):
    engine = watched.judged("single-voter")
    assert engine.findings() == []
    unseen = {"lock-expiries", "auth-failures", "refused-requests"} | (FROM_4_4 if kind == APACHE else set())
    assert {each.rule for each in engine.unseen()} == unseen
