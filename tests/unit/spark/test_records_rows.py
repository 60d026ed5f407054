"""Rows of record tables: tombstones, versions, secrets, what consumers say, control records, the newest rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.records.decode import RecordDecoder, Source
from ottla.spark.records.json_rows import JsonDecoder
from ottla.spark.records.latest import Newest
from ottla.spark.records.tables import find_table
from ottla.spark.records.values import ValueRules
from ottla.wire.batch import Record, build_batch, build_end_txn_marker
from ottla.wire.columns import decode_columns
from ottla.wire.keyed import encode_framed
from ottla.wire.types.cluster_metadata import ConfigRecord, NoOpRecord, TopicRecord, UserScramCredentialRecord
from ottla.wire.types.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.types.group_classic import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

GOLDEN = Path(__file__).parents[2] / "golden"
OPEN = 1 << 60
Pair = tuple[bytes | None, bytes | None]


def chunk(*records: Pair) -> bytes:
    return build_batch([Record(100 + i, 1000 + i, *record) for i, record in enumerate(records)])


def rows(name: str, *records: Pair, rules: ValueRules = ValueRules()) -> list[dict[str, Any]]:  # noqa: B008
    table = find_table(name)
    columns = decode_columns(chunk(*records))
    found = RecordDecoder(table, rules, 1000).batches(Source(table.topic, 0), columns, 0, OPEN)
    return [row for each in found for row in each.rows.to_pylist()]


def json_rows(topic: str, data: bytes, rules: ValueRules = ValueRules()) -> list[dict[str, Any]]:  # noqa: B008
    found = JsonDecoder(rules, 1000).batches(Source(topic, 0), decode_columns(data, include_control=True), 0, OPEN)
    return [row for each in found for row in each.rows.to_pylist()]


def commit(group: str, offset: int | None, *, version: int = 4, partition: int = 0) -> Pair:
    key = encode_framed(OffsetCommitKey(group, "orders", partition), 0)
    value = OffsetCommitValue(offset=offset or 0, leader_epoch=5, metadata="m", commit_timestamp=77, topic_id=b"i" * 16)
    return key, None if offset is None else encode_framed(_of_version(value, version), version)


def _of_version(value: OffsetCommitValue, version: int) -> OffsetCommitValue:
    return value if version >= 3 else OffsetCommitValue(value.offset, metadata="m", commit_timestamp=77)


def metadata(record: object, version: int = 0) -> Pair:
    return None, encode_framed(record, version)


# --- versions ---------------------------------------------------------------------------------------------------------


def test_a_tombstone_has_its_key_and_nulls():
    (row,) = rows("OffsetCommit", commit("g", None))
    assert (row["group"], row["topic"], row["partition"]) == ("g", "orders", 0)
    assert row["_tombstone"] is True
    assert row["_version"] is None
    assert row["offset"] is None


def test_fields_that_a_version_does_not_have_are_null_or_kafkas_default():
    (row,) = rows("OffsetCommit", commit("g", 7, version=0))
    assert (row["offset"], row["leaderEpoch"], row["expireTimestamp"], row["topicId"]) == (7, None, None, None)
    (row,) = rows("OffsetCommit", commit("g", 7, version=0), rules=ValueRules(defaults=True))
    assert (row["leaderEpoch"], row["expireTimestamp"], row["topicId"]) == (-1, -1, "A" * 22)
    (row,) = rows("OffsetCommit", commit("g", 7))
    assert (row["leaderEpoch"], row["topicId"]) == (5, "aWlpaWlpaWlpaWlpaWlpaQ")


def test_offsets_in_their_oldest_form_are_among_the_others():
    old = (
        encode_framed(LegacyOffsetCommitKey("g", "orders", 1), 0),
        encode_framed(LegacyOffsetCommitValue(3, "m", 9), 0),
    )
    found = rows("OffsetCommit", old, commit("g", 7))
    assert [(row["_record"], row["offset"]) for row in found] == [("LegacyOffsetCommit", 3), ("OffsetCommit", 7)]
    assert found[0]["leaderEpoch"] is None
    assert [row["offset"] for row in rows("LegacyOffsetCommit", old, commit("g", 7))] == [3]


def test_a_version_of_the_future_has_its_key_and_nulls():
    key, _ = commit("g", 7)
    (row,) = rows("OffsetCommit", (key, b"\x00\x63what comes then"))
    assert (row["group"], row["_version"], row["_tombstone"], row["offset"]) == ("g", 99, False, None)


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x03\x00"])
def test_a_value_that_is_cut_off_is_no_error(value: bytes):
    key, _ = commit("g", 7)
    (row,) = rows("OffsetCommit", (key, value))
    assert row["offset"] is None


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x01", b"\x00\x01\x00\x05g", b"\x03\xe7future"])
def test_keys_of_another_kind_are_left_out(key: bytes | None):
    assert rows("OffsetCommit", (key, b"\x00\x00")) == []


@pytest.mark.parametrize(("key", "value"), [(b"\x03\xe7future", b"\x00\x00x"), (b"", None), (None, b"\x00")])
def test_all_records_show_unknown_ones_as_bytes(key: bytes | None, value: bytes | None):
    (row,) = json_rows("__consumer_offsets", chunk((key, value)))
    assert row["_record"] is None
    assert row["_tombstone"] is (value is None)
    for text, data in ((row["key"], key), (row["value"], value)):
        assert text is None if data is None else set(json.loads(text)) == {"base64"}


def test_all_records_show_tombstones():
    (row,) = json_rows("__consumer_offsets", chunk(commit("g", None)))
    assert json.loads(row["key"]) == {"group": "g", "topic": "orders", "partition": 0}
    assert (row["value"], row["_tombstone"], row["_record"]) == (None, True, "OffsetCommit")


def test_only_rows_of_the_range_are_decoded():
    table = find_table("OffsetCommit")
    columns = decode_columns(chunk(*[commit("g", n) for n in range(10)]))
    decoder = RecordDecoder(table, ValueRules(), 3)
    found = [each.rows.column("_offset").to_pylist() for each in decoder.batches(Source("t", 0), columns, 102, 107)]
    assert found == [[102, 103, 104], [105, 106]]


# --- what is inside ---------------------------------------------------------------------------------------------------


def test_what_consumers_say_is_decoded_and_what_others_say_is_not():
    subscription = encode_framed(ConsumerProtocolSubscription(topics=("a", "b")), 1)
    assignment = encode_framed(
        ConsumerProtocolAssignment(assigned_partitions=(ConsumerProtocolAssignment.TopicPartition("a", (0, 2)),)), 0
    )
    member = GroupMetadataValue.MemberMetadata("m", None, "c", "/h", 1, 2, subscription, assignment)
    for kind in ("consumer", "connect"):
        value = GroupMetadataValue(protocol_type=kind, generation=1, members=(member,))
        (row,) = rows("GroupMetadata", (encode_framed(GroupMetadataKey("g"), 0), encode_framed(value, 3)))
        (found,) = row["members"]
        assert found["subscription"] == subscription
        if kind == "connect":
            assert (found["subscriptionDecoded"], found["assignmentDecoded"]) == (None, None)
        else:
            assert found["subscriptionDecoded"]["Topics"] == ["a", "b"]
            assert found["assignmentDecoded"]["AssignedPartitions"] == [{"Topic": "a", "Partitions": [0, 2]}]


def test_what_opens_doors_is_shown_only_on_request():
    credential = metadata(UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096))
    (row,) = rows("UserScramCredential", credential)
    assert (row["Name"], row["MechanismName"], row["Iterations"]) == ("alice", "SCRAM-SHA-256", 4096)
    assert (row["Salt"], row["StoredKey"], row["ServerKey"]) == (None, None, None)
    (row,) = rows("UserScramCredential", credential, rules=ValueRules(secrets=True))
    assert (row["Salt"], row["StoredKey"], row["ServerKey"]) == (b"salt", b"stored", b"server")
    (row,) = json_rows("__cluster_metadata", chunk(credential))
    assert json.loads(row["value"])["storedKey"] is None


def test_passwords_in_settings_are_shown_only_on_request():
    records = [metadata(ConfigRecord(4, "1", name, "x")) for name in ("ssl.key.password", "retention.ms")]
    assert [row["Value"] for row in rows("Config", *records)] == [None, "x"]
    assert [row["Value"] for row in rows("Config", *records, rules=ValueRules(secrets=True))] == ["x", "x"]
    found = json_rows("__cluster_metadata", chunk(*records))
    assert [json.loads(row["value"])["value"] for row in found] == [None, "x"]
    assert [row["ResourceTypeName"] for row in rows("Config", *records)] == ["BROKER", "BROKER"]


def test_records_without_fields_have_rows():
    assert [row["_offset"] for row in rows("NoOp", metadata(NoOpRecord()), metadata(TopicRecord("t")))] == [100]


# --- control records --------------------------------------------------------------------------------------------------


def golden_snapshot() -> bytes:
    return (GOLDEN / "storage" / "life" / "00000000000000000000-0000000000.checkpoint").read_bytes()


def test_control_records_have_tables():
    columns = decode_columns(golden_snapshot(), include_control=True)
    found = {}
    for name in ("SnapshotHeader", "KRaftVersion", "Voters", "SnapshotFooter", "LeaderChange"):
        decoder = RecordDecoder(find_table(name), ValueRules(), 1000)
        found[name] = [
            row for each in decoder.batches(Source("t", 0), columns, 0, OPEN) for row in each.rows.to_pylist()
        ]
    assert {name: len(rows) for name, rows in found.items()} == {
        "SnapshotHeader": 1,
        "KRaftVersion": 1,
        "Voters": 1,
        "SnapshotFooter": 1,
        "LeaderChange": 0,
    }
    (voters,) = found["Voters"]
    assert [voter["VoterId"] for voter in voters["Voters"]] == [1]
    assert voters["_record"] == "Voters"
    assert voters["_epoch"] == 0


def test_all_records_show_control_records():
    names = [row["_record"] for row in json_rows("__cluster_metadata", golden_snapshot())]
    assert names[0] == "SnapshotHeader"
    assert names[-1] == "SnapshotFooter"
    marker = build_end_txn_marker(committed=True, coordinator_epoch=3, producer_id=1, producer_epoch=0, timestamp=5)
    (row,) = json_rows("__consumer_offsets", marker)
    assert json.loads(row["key"]) == {"type": "COMMIT"}
    assert json.loads(row["value"]) == {"coordinatorEpoch": 3}


# --- the newest rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_min", [1, 5, 1000])
def test_the_newest_row_of_each_key(rows_min: int):
    table = find_table("OffsetCommit")
    decoder = RecordDecoder(table, ValueRules(), 3)
    newest = Newest(decoder.schema, rows_min=rows_min)
    history = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", None), ("a", 3), ("d", 4), ("c", None), ("c", 9)]
    columns = decode_columns(chunk(*[commit(group, offset) for group, offset in history]))
    for found in decoder.batches(Source(table.topic, 0), columns, 0, OPEN):
        newest.add(found)
    left = [row for batch in newest.batches() for row in batch.to_pylist()]
    assert [(row["group"], row["offset"]) for row in left] == [("a", 3), ("d", 4), ("c", 9)]
    assert [row["_offset"] for row in left] == [105, 106, 108]


def test_nothing_is_left_of_deleted_keys():
    decoder = RecordDecoder(find_table("OffsetCommit"), ValueRules(), 10)
    newest = Newest(decoder.schema)
    columns = decode_columns(chunk(commit("a", 1), commit("a", None)))
    for found in decoder.batches(Source("t", 0), columns, 0, OPEN):
        newest.add(found)
    assert list(newest.batches()) == []
