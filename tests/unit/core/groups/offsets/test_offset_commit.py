"""OffsetCommit: each row of the table in `ottla.core.groups.offsets.commit`, and what the records look like."""

from typing import Any

import pytest

from ottla import wire
from ottla.core.groups.table import Claim, GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import decode_keyed
from ottla.wire.reject import Reject
from tests.unit.core.groups.offsets.bench import START_MS, Bench, Entry, Marker

NONE = ErrorCode.NONE


def last_entry(bench: Bench) -> Entry:
    entry = bench.log[-1]
    assert not isinstance(entry, Marker)
    return entry


def test_a_commit_is_stored_and_read_back(bench: Bench):
    assert bench.commit("g", ("orders", 0, 42, "note", 7), ("orders", 1, 43)) == {
        ("orders", 0): NONE,
        ("orders", 1): NONE,
    }
    (topic,) = bench.fetch("g", {"orders": [0]}).topics
    (partition,) = topic.partitions
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (42, 7, "note")
    assert bench.stored("g") == {("orders", 0): 42, ("orders", 1): 43}


def test_a_record_is_kafkas_version_4(bench: Bench):
    bench.commit("g", ("orders", 3, 42, "note", 7))
    entry = last_entry(bench)
    assert entry.key == bytes.fromhex("0001 0001 67 0006 6f7264657273 00000003")
    assert entry.value is not None
    version, offset, epoch = entry.value[:2], entry.value[2:10], entry.value[10:14]
    assert (version, offset, epoch) == (b"\0\4", (42).to_bytes(8), (7).to_bytes(4))
    tagged = b"\1\0\x10" + b"O" * 16  # one tagged field: number 0, 16 bytes
    assert entry.value[14:] == b"\5note" + START_MS.to_bytes(8) + tagged


@pytest.mark.parametrize(("topic", "version"), [("orders", 9), (b"O" * 16, 10)])
def test_the_record_has_name_and_id_whichever_the_request_had(bench: Bench, topic: Any, version: int):
    assert bench.commit("g", (topic, 0, 42), version=version) == {(topic, 0): NONE}
    entry = last_entry(bench)
    record = decode_keyed("__consumer_offsets", entry.key, entry.value)
    assert (record.key.topic, record.value.topic_id) == ("orders", b"O" * 16)


@pytest.mark.parametrize("retention_ms", [0, 5_000])
def test_a_retention_time_makes_a_record_of_version_1(bench: Bench, retention_ms: int):
    bench.commit("g", ("orders", 0, 42, "note"), version=4, retention_time_ms=retention_ms)
    entry = last_entry(bench)
    assert entry.value is not None
    assert entry.value[:2] == b"\0\1"
    value = wire.decode("OffsetCommitValue", 1, entry.value[2:])
    assert (value.commit_timestamp, value.expire_timestamp) == (START_MS, START_MS + retention_ms)
    assert value.topic_id == bytes(16)  # which this version cannot tell


def test_null_metadata_is_stored_as_empty(bench: Bench):
    bench.commit("g", ("orders", 0, 42, None))
    (topic,) = bench.fetch("g", None).topics
    assert topic.partitions[0].metadata == ""


def test_a_negative_offset_is_stored(bench: Bench):
    assert bench.commit("g", ("orders", 0, -17)) == {("orders", 0): NONE}
    assert bench.stored("g") == {("orders", 0): -17}


def test_the_same_partition_twice_keeps_the_last(bench: Bench):
    bench.commit("g", ("orders", 0, 1), ("orders", 0, 2))
    assert bench.stored("g") == {("orders", 0): 2}


def test_without_generation_a_group_comes_into_being(bench: Bench):
    assert bench.table.get("g") is None
    assert bench.commit("g", ("orders", 0, 42), member_id="whoever") == {("orders", 0): NONE}
    group = bench.table.get("g")
    assert group is not None
    assert (group.kind, group.is_empty) == (GroupKind.CLASSIC, True)


def test_an_empty_group_id_is_accepted(bench: Bench):
    assert bench.commit("", ("orders", 0, 42)) == {("orders", 0): NONE}


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.ILLEGAL_GENERATION), (8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_generation_needs_a_group(bench: Bench, version: int, code: ErrorCode):
    answer = bench.commit("g", ("orders", 0, 42), version=version, generation_id_or_member_epoch=0)
    assert answer == {("orders", 0): code}
    assert (bench.log, bench.table.get("g")) == ([], None)


def test_a_group_is_asked_with_what_the_member_claims(bench: Bench):
    group = bench.group("g")
    bench.commit("g", ("orders", 0, 42), generation_id_or_member_epoch=5, member_id="m", group_instance_id="i")
    assert group.claims == [Claim("m", 5, "i", is_transactional=False)]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ],
)
def test_what_the_group_says_stands_for_all_partitions(bench: Bench, code: ErrorCode):
    bench.group("g").refusals["commit"] = code
    answer = bench.commit("g", ("orders", 0, 1), ("orders", 1, 2, "x" * 5000), ("nowhere", 0, 3))
    assert answer == {
        ("orders", 0): code,
        ("orders", 1): code,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert bench.log == []


def test_one_partition_that_the_member_may_not_commit_fails_all(bench: Bench):
    asked = []

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        asked.append((topic, topic_id, partition))
        if partition == 1:
            raise Reject(ErrorCode.STALE_MEMBER_EPOCH)

    bench.group("g").check = check
    answer = bench.commit("g", (b"O" * 16, 0, 1), (b"O" * 16, 1, 2), (b"O" * 16, 2, 3), version=10)
    assert set(answer.values()) == {ErrorCode.STALE_MEMBER_EPOCH}
    assert asked == [("orders", b"O" * 16, 0), ("orders", b"O" * 16, 1)]
    assert bench.log == []


def test_topics_that_cannot_be_committed_do_not_hold_up_the_others(bench: Bench):
    bench.denied.add(("READ", "bills"))
    answer = bench.commit(
        "g", ("orders", 0, 1), ("orders", 4, 1), ("orders", -1, 1), ("bills", 0, 1), ("nowhere", 0, 1)
    )
    assert answer == {
        ("orders", 0): NONE,
        ("orders", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bills", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert bench.stored("g") == {("orders", 0): 1}


def test_by_id_topics_that_cannot_be_committed_do_not_hold_up_the_others(bench: Bench):
    bench.denied.add(("READ", "bills"))
    answer = bench.commit("g", (b"O" * 16, 0, 1), (b"B" * 16, 0, 1), (b"X" * 16, 0, 1), (bytes(16), 0, 1), version=10)
    assert answer == {
        (b"O" * 16, 0): NONE,
        (b"B" * 16, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        (b"X" * 16, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        (bytes(16), 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_a_denied_topic_looks_the_same_whether_it_exists_or_not(bench: Bench):
    bench.denied |= {("READ", "bills"), ("READ", "nowhere")}
    assert set(bench.commit("g", ("bills", 0, 1), ("nowhere", 0, 1)).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_if_nothing_is_left_the_group_is_not_asked(bench: Bench):
    group = bench.group("g")
    answer = bench.commit("g", ("nowhere", 0, 1), ("orders", 9, 1), generation_id_or_member_epoch=3)
    assert set(answer.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert group.claims == []
    assert bench.commit("new", ("nowhere", 0, 1), generation_id_or_member_epoch=3) == {
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 10, NONE),
        ("x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 10, NONE),  # twenty bytes of UTF-8
        ("é" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("𝄞" * 5, NONE),  # two UTF-16 units each
        ("𝄞" * 6, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("𝄞" * 5 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_in_utf_16_units(bench: Bench, metadata: str, code: ErrorCode):
    bench.settings["offset.metadata.max.bytes"] = 10
    assert bench.commit("g", ("orders", 0, 1, metadata), ("orders", 1, 2)) == {("orders", 0): code, ("orders", 1): NONE}
    assert (("orders", 0) in bench.stored("g")) == (code is NONE)


def test_a_request_without_topics_is_answered(bench: Bench):
    assert bench.commit("g", generation_id_or_member_epoch=4) == {}
    assert bench.table.get("g") is None
