"""What records of the metadata log add up to, where the golden log has no example."""

from typing import Any

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.decode import RecordDecoder, Source
from ottla.spark.records.metadata_state import MetadataState
from ottla.spark.records.tables import find_table
from ottla.spark.records.values import ValueRules
from ottla.wire.batch import Record, build_batch
from ottla.wire.columns import decode_columns
from ottla.wire.keyed import encode_framed
from ottla.wire.types import cluster_metadata as log

ONE, OTHER = b"1" * 16, b"2" * 16
QUOTA = log.ClientQuotaRecord


def state(table: str, *records: Any) -> list[dict[str, Any]]:
    """The newest rows after records; a pair is a record with its version."""
    return replayed(
        table, *(encode_framed(*each) if isinstance(each, tuple) else encode_framed(each, 0) for each in records)
    )


def replayed(table: str, *framed: bytes) -> list[dict[str, Any]]:
    columns = decode_columns(build_batch([Record(at, 1000 + at, None, value) for at, value in enumerate(framed)]))
    found = find_table(table)
    decoder = RecordDecoder(found, ValueRules(secrets=True), 1000)
    batches = MetadataState(found, decoder).rows([(Source(found.topic, 0), columns, 0, len(framed))])
    return [row for batch in batches for row in batch.to_pylist()]


def partition(topic_id: bytes = ONE, number: int = 0, **fields: Any) -> log.PartitionRecord:
    return log.PartitionRecord(number, topic_id, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0, **fields)


def change(**fields: Any) -> log.PartitionChangeRecord:
    return log.PartitionChangeRecord(0, ONE, **fields)


def test_a_partition_after_changes():
    elected = (change(leader=2, isr=(2,), eligible_leader_replicas=(1,)), 2)
    (row,) = state("Partition", (partition(), 0), change(isr=(1,)), elected)
    assert (row["Leader"], row["LeaderEpoch"], row["PartitionEpoch"], row["Isr"]) == (2, 1, 2, [2])
    assert (row["Replicas"], row["EligibleLeaderReplicas"]) == ([1, 2], [1])
    assert (row["_offset"], row["_record"], row["_version"]) == (2, "PartitionRecord", 0)


def test_directories_of_replicas_that_move():
    placed = (partition(directories=(b"a" * 16, b"b" * 16)), 1)
    (row,) = state("Partition", placed, change(replicas=(2, 3)))
    assert row["Directories"] == ["YmJiYmJiYmJiYmJiYmJiYg", "AAAAAAAAAAAAAAAAAAAAAg"]
    (row,) = state("Partition", placed, (change(replicas=(3,), directories=(b"c" * 16,)), 1))
    assert row["Directories"] == ["Y2NjY2NjY2NjY2NjY2NjYw"]


def test_partitions_go_with_their_topic():
    records = (partition(), partition(number=1), partition(OTHER), log.RemoveTopicRecord(ONE), change(leader=2))
    (row,) = state("Partition", *records)
    assert row["TopicId"] == "MjIyMjIyMjIyMjIyMjIyMg"


@pytest.mark.parametrize(("name", "left"), [("one", [[], [4]]), ("", [[], []])])
def test_eligible_leaders_are_forgotten(name: str, left: list[list[int]]):
    eligible = [(partition(topic, eligible_leader_replicas=(4,)), 2) for topic in (ONE, OTHER)]
    topics = (log.TopicRecord("one", ONE), log.TopicRecord("other", OTHER))
    found = state("Partition", *topics, *eligible, log.ClearElrRecord(name))
    assert sorted(row["EligibleLeaderReplicas"] for row in found) == left


def test_settings_go_with_their_topic():
    records = (
        log.TopicRecord("one", ONE),
        log.ConfigRecord(2, "one", "retention.ms", "5"),
        log.ConfigRecord(2, "two", "retention.ms", "6"),
        log.ConfigRecord(4, "one", "x", "7"),
        log.ConfigRecord(4, "1", "y", "8"),
        log.ConfigRecord(4, "1", "y", None),
        log.RemoveTopicRecord(ONE),
    )
    found = {
        (row["ResourceTypeName"], row["ResourceName"], row["Name"]): row["Value"] for row in state("Config", *records)
    }
    assert found == {("TOPIC", "two", "retention.ms"): "6", ("BROKER", "one", "x"): "7"}


def test_brokers():
    registered = (log.RegisterBrokerRecord(1, broker_epoch=5, log_dirs=(b"a" * 16,)), 3)
    moved = (log.BrokerRegistrationChangeRecord(1, 5, fenced=-1, in_controlled_shutdown=1), 1)
    (row,) = state("RegisterBroker", registered, moved)
    assert (row["Fenced"], row["InControlledShutdown"], row["LogDirs"]) == (False, True, ["YWFhYWFhYWFhYWFhYWFhYQ"])
    (row,) = state("RegisterBroker", registered, log.UnfenceBrokerRecord(1, 5), log.FenceBrokerRecord(1, 5))
    assert row["Fenced"] is True
    assert state("RegisterBroker", registered, log.UnregisterBrokerRecord(1, 5)) == []


def test_quotas_by_entity_and_key():
    user = (QUOTA.EntityData("user", "anna"), QUOTA.EntityData("client-id", None))
    records = (
        QUOTA(user, "producer_byte_rate", 10.0),
        QUOTA(user[::-1], "producer_byte_rate", 20.0),
        QUOTA(user, "consumer_byte_rate", 30.0),
        QUOTA(user, "consumer_byte_rate", 0.0, remove=True),
        QUOTA(user[:1], "producer_byte_rate", 40.0),
    )
    assert [row["Value"] for row in state("ClientQuota", *records)] == [20.0, 40.0]


def test_what_else_can_be_removed():
    acl = log.AccessControlEntryRecord(ONE)
    assert state("AccessControlEntry", acl, log.RemoveAccessControlEntryRecord(ONE)) == []
    users = [log.UserScramCredentialRecord("anna", mechanism) for mechanism in (1, 2)]
    (row,) = state("UserScramCredential", *users, log.RemoveUserScramCredentialRecord("anna", 1))
    assert row["MechanismName"] == "SCRAM-SHA-512"
    token = log.DelegationTokenRecord(token_id="t")
    assert state("DelegationToken", token, log.RemoveDelegationTokenRecord("t")) == []
    level = log.FeatureLevelRecord
    (row,) = state("FeatureLevel", level("a", 1), level("b", 1), level("a", 2), level("b", 0))
    assert (row["Name"], row["FeatureLevel"]) == ("a", 2)


def test_transactions_count_when_they_end():
    begin, end, abort = log.BeginTransactionRecord(), log.EndTransactionRecord(), log.AbortTransactionRecord()
    one, other = log.TopicRecord("one", ONE), log.TopicRecord("other", OTHER)
    assert [row["Name"] for row in state("Topic", begin, one, end)] == ["one"]
    assert [row["Name"] for row in state("Topic", begin, one, abort, other)] == ["other"]
    assert state("Topic", begin, one) == []


def test_a_version_of_the_future_cannot_be_added_up():
    data = encode_framed(log.TopicRecord("one", ONE), 0)
    with pytest.raises(OttlaSparkError, match=r"^offset 0 of the metadata log has version 9 of TopicRecord"):
        replayed("Topic", data[:2] + b"\x09" + data[3:])
