"""Internal topics as tables: what they say is what the cluster's own APIs say.

Every test reads twice, from the broker's files and over the network where the network has it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client import group_offsets, groups
from ottla.client.client import always
from ottla.client.metadata import TopicPartition
from ottla.spark import explain_error
from ottla.wire import uuid_text
from ottla.wire.types.describe_transactions import DescribeTransactionsRequest
from tests.interop.spark.conftest import Broker, new_broker
from tests.interop.spark.group_history import (
    CLASSIC,
    CONSUMER,
    IDLE_SHARE,
    LONG_SESSIONS,
    OTHER,
    SHARE,
    SIMPLE,
    STREAMS,
    TOPIC,
    let_go,
    make_history,
)
from tests.interop.spark.topics import Topics

RECORDS = "ottla-records"
FILES, NETWORK = "files", "network"


class Cluster(NamedTuple):
    broker: Broker
    topics: Topics

    def ids(self) -> dict[str, str]:
        found = self.topics.client.call(_topics, [TOPIC, OTHER])
        return {uuid_text(topic.topic_id): name for name, topic in found.items()}


async def _topics(client: Any, names: list[str]) -> Any:
    return await client.topics(names)


@pytest.fixture(scope="module")
def cluster(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {**LONG_SESSIONS, "metadata.log.max.record.bytes.between.snapshots": "2000"}
    with new_broker(kind, tmp_path_factory.mktemp(f"{kind}-records"), **settings) as broker:
        topics = Topics(broker.bootstrap_servers)
        make_history(topics)
        yield Cluster(broker, topics)
        let_go()
        topics.close()


class Tables:
    """Reads record tables of a broker, from its files or over the network."""

    def __init__(self, spark: Any, broker: Broker, place: str) -> None:
        self.spark = spark
        where = {"path": str(broker.data_dir)} if place == FILES else {}
        self.where = where or {"kafka.bootstrap.servers": broker.bootstrap_servers}

    def frame(self, record: str, **options: object) -> Any:
        given = {**self.where, "record": record, **{name: str(value) for name, value in options.items()}}
        return self.spark.read.format(RECORDS).options(**given).load()

    def rows(self, record: str, **options: object) -> list[Any]:
        found: list[Any] = self.frame(record, **options).collect()
        return sorted(found, key=lambda row: (row["_topic"], row["_partition"], row["_offset"]))

    def latest(self, record: str, **options: object) -> list[Any]:
        return self.rows(record, view="latest", **options)

    def one(self, record: str, group: str) -> Any:
        (row,) = (row for row in self.latest(record) if row["GroupId"] == group)
        return row

    def refusal(self, record: str, **options: object) -> str:
        with pytest.raises(Exception) as raised:  # noqa: PT011  (any of Spark's)
            self.rows(record, **options)
        return explain_error(raised.value)


@pytest.fixture(params=[FILES, NETWORK])
def tables(request: pytest.FixtureRequest, spark: Any, cluster: Cluster) -> Tables:
    return Tables(spark, cluster.broker, request.param)


@pytest.fixture
def files(spark: Any, cluster: Cluster) -> Tables:
    return Tables(spark, cluster.broker, FILES)


# --- 70: groups -------------------------------------------------------------------------------------------------------


def test_committed_offsets(tables: Tables, cluster: Cluster):
    latest = tables.latest("OffsetCommit")
    for group in (CLASSIC, SIMPLE):
        told = cluster.topics.client.call(group_offsets.committed, group)
        found = {(row["topic"], row["partition"]): row for row in latest if row["group"] == group}
        assert {at: row["offset"] for at, row in found.items()} == {tuple(at): each.offset for at, each in told.items()}
        assert {at: row["metadata"] for at, row in found.items()} == {tuple(at): it.metadata for at, it in told.items()}
    assert {row["group"] for row in latest} == {CLASSIC, SIMPLE}


def test_tombstones_and_aborted_commits(tables: Tables):
    everything = [row for row in tables.rows("OffsetCommit") if row["group"] == SIMPLE]
    gone = [row for row in everything if row["_tombstone"]]
    assert [(row["topic"], row["partition"], row["offset"]) for row in gone] == [(TOPIC, 1, None)]
    assert 99 not in {row["offset"] for row in everything}
    uncommitted = tables.rows("OffsetCommit", isolation="read_uncommitted")
    assert 99 in {row["offset"] for row in uncommitted}


def test_filters_and_columns(tables: Tables):
    frame = tables.frame("OffsetCommit", columns="group,topic,offset,_offset")
    assert frame.columns == ["_offset", "group", "topic", "offset"]
    found = frame.where(f"group = '{SIMPLE}' and offset is not null").collect()
    everything = [row for row in tables.rows("OffsetCommit") if row["group"] == SIMPLE and not row["_tombstone"]]
    assert sorted((row["_offset"], row["offset"]) for row in found) == sorted(
        (row["_offset"], row["offset"]) for row in everything
    )
    (kind,) = tables.frame("*").where("_record = 'GroupMetadata'").select("_record").distinct().collect()
    assert kind["_record"] == "GroupMetadata"


def test_classic_groups(tables: Tables, cluster: Cluster):
    told = cluster.topics.client.call(groups.describe, CLASSIC)
    (row,) = (row for row in tables.latest("GroupMetadata") if row["group"] == CLASSIC)
    assert (row["protocolType"], len(row["members"])) == (told.protocol_type, len(told.members))
    full = [row for row in tables.rows("GroupMetadata") if row["group"] == CLASSIC and row["members"]]
    (member,) = full[-1]["members"]
    assert list(member["subscriptionDecoded"]["Topics"]) == [TOPIC]
    (assigned,) = member["assignmentDecoded"]["AssignedPartitions"]
    assert (assigned["Topic"], sorted(assigned["Partitions"])) == (TOPIC, [0, 1])


def assignment(parts: Any, ids: dict[str, str]) -> dict[str, list[int]]:
    return {ids[part["TopicId"]]: sorted(part["Partitions"]) for part in parts}


def told_assignment(parts: Any) -> dict[str, list[int]]:
    return {part.topic_name: sorted(part.partitions) for part in parts}


def test_consumer_groups(tables: Tables, cluster: Cluster):
    told = cluster.topics.client.call(groups.describe, CONSUMER)
    (member,) = told.members
    ids = cluster.ids()
    assert tables.one("ConsumerGroupMetadata", CONSUMER)["Epoch"] == told.group_epoch
    assert tables.one("ConsumerGroupTargetAssignmentMetadata", CONSUMER)["AssignmentEpoch"] == told.assignment_epoch
    described = tables.one("ConsumerGroupMemberMetadata", CONSUMER)
    assert (described["MemberId"], described["ClientId"]) == (member.member_id, member.client_id)
    assert list(described["SubscribedTopicNames"]) == list(member.subscribed_topic_names)
    current = tables.one("ConsumerGroupCurrentMemberAssignment", CONSUMER)
    assert (current["MemberEpoch"], current["StateName"]) == (member.member_epoch, "STABLE")
    assert assignment(current["AssignedPartitions"], ids) == told_assignment(member.assignment.topic_partitions)
    target = tables.one("ConsumerGroupTargetAssignmentMember", CONSUMER)
    assert assignment(target["TopicPartitions"], ids) == told_assignment(member.target_assignment.topic_partitions)


def test_share_groups(tables: Tables, cluster: Cluster):
    told = cluster.topics.client.call(groups.describe, SHARE)
    (member,) = told.members
    ids = cluster.ids()
    assert tables.one("ShareGroupMetadata", SHARE)["Epoch"] == told.group_epoch
    assert tables.one("ShareGroupTargetAssignmentMetadata", SHARE)["AssignmentEpoch"] == told.assignment_epoch
    current = tables.one("ShareGroupCurrentMemberAssignment", SHARE)
    assert (current["MemberId"], current["MemberEpoch"]) == (member.member_id, member.member_epoch)
    assert assignment(current["AssignedPartitions"], ids) == told_assignment(member.assignment.topic_partitions)
    state = tables.one("ShareGroupStatePartitionMetadata", SHARE)
    assert assignment(state["InitializedTopics"], ids) == {TOPIC: [0, 1], OTHER: [0, 1]}


def test_share_states(tables: Tables, cluster: Cluster):
    ids = cluster.ids()
    told = cluster.topics.client.call(group_offsets.share_starts, IDLE_SHARE)
    rows = [row for row in tables.latest("ShareSnapshot") if row["GroupId"] == IDLE_SHARE]
    assert {(ids[row["TopicId"]], row["Partition"]): row["StartOffset"] for row in rows} == {
        tuple(at): each.offset for at, each in told.items()
    }
    assert {row["StateEpoch"] for row in rows} <= {0, 1, 2, 3}


def test_streams_groups(tables: Tables, cluster: Cluster):
    told = cluster.topics.client.call(groups.describe, STREAMS)
    (member,) = told.members
    assert tables.one("StreamsGroupMetadata", STREAMS)["Epoch"] == told.group_epoch
    topology = tables.one("StreamsGroupTopology", STREAMS)
    assert topology["Epoch"] == told.topology.epoch
    assert [list(part["SourceTopics"]) for part in topology["Subtopologies"]] == [[TOPIC]]
    current = tables.one("StreamsGroupCurrentMemberAssignment", STREAMS)
    assert (current["MemberEpoch"], current["StateName"]) == (member.member_epoch, "STABLE")
    tasks = {part["SubtopologyId"]: sorted(part["Partitions"]) for part in current["ActiveTasks"]}
    assert tasks == {part.subtopology_id: sorted(part.partitions) for part in member.assignment.active_tasks}
    assert tables.one("StreamsGroupMemberMetadata", STREAMS)["ProcessId"] == member.process_id


def test_transactions(tables: Tables, cluster: Cluster):
    names = ("tx-committed", "tx-aborted", "tx-open")
    rows = {row["TransactionalId"]: row for row in tables.latest("TransactionLog")}
    assert set(rows) == {*names, "offsets"}
    for name in names:
        request = DescribeTransactionsRequest((name,))
        asked = cluster.topics.client.ask("DescribeTransactions", always(request), coordinator=("transaction", name))
        (told,) = asked.body.transaction_states  # type: ignore[attr-defined]
        row = rows[name]
        assert row["TransactionStatusName"] == told.transaction_state
        assert (row["ProducerId"], row["ProducerEpoch"]) == (told.producer_id, told.producer_epoch)
        assert row["TransactionTimeoutMs"] == told.transaction_timeout_ms
        parts = {part["Topic"]: sorted(part["PartitionIds"]) for part in row["TransactionPartitions"] or ()}
        assert parts == {part.topic: sorted(part.partitions) for part in told.topics}


def test_all_records_as_json(tables: Tables):
    rows = tables.rows("*")
    assert {row["_topic"] for row in rows} >= {"__consumer_offsets", "__transaction_state", "__share_group_state"}
    assert {row["_record"] for row in rows} >= {
        "OffsetCommit",
        "TransactionLog",
        "ShareSnapshot",
        "StreamsGroupTopology",
    }
    assert None not in {row["_record"] for row in rows}
    commits = [row for row in rows if row["_record"] == "OffsetCommit"]
    typed = tables.rows("OffsetCommit")
    assert [json.loads(row["key"])["group"] for row in commits] == [row["group"] for row in typed]
    assert [row["_tombstone"] for row in commits] == [row["_tombstone"] for row in typed]


# --- 68: metadata -----------------------------------------------------------------------------------------------------


def test_the_metadata_log_gives_the_brokers_own_describe(files: Tables, cluster: Cluster):
    client = cluster.topics
    for number in range(20):  # enough for a snapshot
        name = client.create(f"temporary-{number}")
        client.delete(name)
    client.grow(client.create("grown", partitions=1, retention_ms=1234), 3)
    told = client.client.call(_topics, [TOPIC, OTHER, "grown"])
    newest = {row["Name"]: row["TopicId"] for row in files.latest("Topic")}
    assert {name: uuid_text(topic.topic_id) for name, topic in told.items()}.items() <= newest.items()
    assert not any(name.startswith("temporary") for name in newest)
    removed = {row["TopicId"] for row in files.rows("RemoveTopic")}
    alive = {row["Name"]: row["TopicId"] for row in files.rows("Topic") if row["TopicId"] not in removed}
    assert alive == newest
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for row in files.rows("Partition"):
        partitions[row["TopicId"], row["PartitionId"]] = row.asDict(recursive=True)
    for row in files.rows("PartitionChange"):
        known = partitions.get((row["TopicId"], row["PartitionId"]))
        if known is not None:
            known |= {name: row[name] for name in ("Isr", "Replicas") if row[name] is not None}
            known |= {"Leader": row["Leader"]} if row["Leader"] != -2 else {}
    latest = {(row["TopicId"], row["PartitionId"]): row.asDict() for row in files.latest("Partition")}
    for topic in told.values():
        for number, each in topic.partitions.items():
            for known in (partitions, latest):
                found = known[uuid_text(topic.topic_id), number]
                assert (found["Leader"], list(found["Replicas"]), list(found["Isr"])) == (
                    each.leader,
                    list(each.replicas),
                    list(each.isr),
                )
            assert latest[uuid_text(topic.topic_id), number]["LeaderEpoch"] == each.leader_epoch
    configs = {
        (row["ResourceTypeName"], row["ResourceName"], row["Name"]): row["Value"] for row in files.rows("Config")
    }
    assert configs["TOPIC", "grown", "retention.ms"] == "1234"
    (broker,) = {row["BrokerId"] for row in files.rows("RegisterBroker")}
    assert broker == 1
    assert files.rows("LeaderChange")[0]["LeaderId"] == 1


def test_controllers_show_their_log(spark: Any, files: Tables, cluster: Cluster):
    network = Tables(spark, cluster.broker, NETWORK)
    for record in ("Topic", "Partition", "LeaderChange", "Voters"):
        assert keyed(network.rows(record)) == keyed(files.rows(record))
    for record, key in (("Topic", "Name"), ("Partition", "LeaderEpoch"), ("Voters", "Version")):
        assert [row[key] for row in network.latest(record)] == [row[key] for row in files.latest(record)]


def keyed(rows: list[Any]) -> list[Any]:
    return [row for row in rows if row["_offset"] >= 0]


def test_snapshots_by_themselves(spark: Any, files: Tables, cluster: Cluster, tmp_path: Path):
    directory = cluster.broker.data_dir / "__cluster_metadata-0"
    snapshots = sorted(directory.glob("*.checkpoint"))
    assert snapshots
    tables = Tables(spark, cluster.broker, FILES)
    tables.where = {"path": str(snapshots[-1])}
    assert next(row["_record"] for row in tables.rows("*")) == "SnapshotHeader"
    assert len(tables.rows("SnapshotFooter")) == 1
    # A log that has lost its beginning: what was before is in the snapshot.
    everything = {row["Name"] for row in files.rows("Topic")}
    for path in directory.iterdir():
        if path.suffix in (".log", ".index", ".timeindex") or path == snapshots[-1]:
            target = tmp_path / "__cluster_metadata-0" / path.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    tables.where = {"path": str(tmp_path)}
    assert {row["Name"] for row in tables.rows("Topic")} == everything


# --- options and streams ----------------------------------------------------------------------------------------------


def test_errors_name_the_option(tables: Tables):
    assert (
        tables.refusal("OffsetComit")
        == "option record: there is no record type OffsetComit: did you mean OffsetCommit?"
    )
    assert tables.refusal("OffsetCommit", views="latest") == "unknown option views: did you mean view?"
    assert tables.refusal("PartitionChange", view="latest").startswith(
        "option view: PartitionChangeRecord has no latest rows"
    )
    assert tables.refusal("OffsetCommit", topic="__transaction_state").startswith("option topic: OffsetCommit is in")
    tables.where = {}
    assert tables.refusal("OffsetCommit") == "options path, kafka.bootstrap.servers: give exactly one"


def test_a_stream_of_commits(tables: Tables, cluster: Cluster, tmp_path: Path):
    options = {**tables.where, "record": "OffsetCommit", "startingOffsets": "earliest"}

    def run() -> list[Any]:
        frame = tables.spark.readStream.format(RECORDS).options(**options).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.option("path", str(tmp_path / "rows")).trigger(availableNow=True).start()
        assert query.awaitTermination(90)
        found: list[Any] = tables.spark.read.parquet(str(tmp_path / "rows")).collect()
        return found

    before = run()
    assert len(before) == len(tables.rows("OffsetCommit"))
    cluster.topics.client.call(group_offsets.commit, f"late-{tmp_path.name}", {TopicPartition(TOPIC, 0): 21})
    after = run()
    assert len(after) == len(before) + 1
    assert [row["offset"] for row in after if row["group"] == f"late-{tmp_path.name}"] == [21]
