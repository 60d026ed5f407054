"""Groups and their records, those that Apache Kafka wrote included."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.core.coordinator.records import encode_record, record
from ottla.core.groups.admin import DescribeGroup
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.records import group_of, write_empty, write_group
from ottla.core.groups.classic.states import GroupState
from ottla.wire.keyed import decode_versioned
from ottla.wire.types.group_classic import GroupMetadataKey, GroupMetadataValue
from tests.unit.core.groups.classic.bench import Bench

GOLDEN = Path(__file__).parents[4] / "golden" / "wire" / "records.jsonl.gz"

Member = GroupMetadataValue.MemberMetadata


def golden() -> Iterator[tuple[str, bytes]]:
    """All records of classic groups that Kafka's own classes have written, in each version."""
    with gzip.open(GOLDEN, "rt") as lines:
        for line in lines:
            known = json.loads(line)
            if known["name"] == "GroupMetadataValue":
                version = known["version"].to_bytes(2, "big")
                yield f"v{known['version']}-{known['case']}", version + bytes.fromhex(known["hex"])


EXAMPLES = dict(golden())


def test_there_are_examples_of_all_versions() -> None:
    assert {name.partition("-")[0] for name in EXAMPLES} == {"v0", "v1", "v2", "v3", "v4"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_any_record_can_be_loaded(bench: Bench, name: str) -> None:
    """However strange the values are, the group is there, and its life goes on."""
    value, version = decode_versioned("GroupMetadataValue", EXAMPLES[name])
    bench.core.replay(record(GroupMetadataKey("g"), value, version), 0, -1, -1)
    assert bench.core.hard_state() == {("classic", "g"): value}
    group = bench.group
    assert group.generation == value.generation
    assert group.state is (GroupState.STABLE if value.members else GroupState.EMPTY)
    assert group.members.keys() == {each.member_id for each in value.members}
    bench.take(bench.core.loaded(bench.context()))
    bench.advance(100_000)
    assert bench.ask(DescribeGroup("g")).group_id == "g"
    assert bench.join("new", protocol_type=value.protocol_type or "consumer") is not None


def test_older_versions_have_no_rebalance_timeout_and_no_time() -> None:
    value = GroupMetadataValue("consumer", 3, "range", "m", members=(Member("m", session_timeout=9_000),))
    group = group_of("g", value)
    assert group.members["m"].rebalance_timeout_ms == 9_000
    assert group.since_ms is None


def test_a_leader_that_is_no_member_is_replaced() -> None:
    value = GroupMetadataValue("consumer", 3, "range", "gone", 0, (Member("m1"), Member("m2")))
    assert group_of("g", value).leader_id == "m1"


def test_a_leader_is_kept() -> None:
    value = GroupMetadataValue("consumer", 3, "range", "m2", 0, (Member("m1"), Member("m2", "i")))
    group = group_of("g", value)
    assert group.leader_id == "m2"
    assert group.statics == {"i": "m2"}


def test_the_first_record_says_nothing() -> None:
    group = ClassicGroup("g", 5)
    group.protocol_type = "consumer"
    key, value = encode_record(write_empty(group))
    assert key == b"\x00\x02\x00\x01g"
    assert value is not None
    assert decode_versioned("GroupMetadataValue", value) == (GroupMetadataValue("", 0, None, None, 5), 3)


def test_a_record_is_the_group_again(bench: Bench) -> None:
    bench.stable_group(3)
    _, value = encode_record(write_group(bench.group, {"x": b""}))
    assert value is not None
    stored, version = decode_versioned("GroupMetadataValue", value)
    again = group_of("g", stored)
    assert version == 3
    assert (again.generation, again.protocol_name, again.leader_id, again.protocol_type, again.since_ms) == (
        bench.group.generation,
        "range",
        bench.group.leader_id,
        "consumer",
        bench.group.since_ms,
    )
    assert list(again.members) == list(bench.group.members)


def test_a_record_that_this_group_did_not_decide_on_replaces_it(bench: Bench) -> None:
    bench.stable_group()
    value = GroupMetadataValue("consumer", 9, "range", "m", 0, (Member("m"),))
    bench.core.replay(record(GroupMetadataKey("g"), value, 3), 0, -1, -1)
    assert bench.group.generation == 9
    assert list(bench.group.members) == ["m"]


def test_sessions_begin_when_the_log_is_loaded(bench: Bench) -> None:
    value = GroupMetadataValue(
        "consumer", 1, "range", "m1", 0, (Member("m1", session_timeout=7_000), Member("m2", session_timeout=9_000))
    )
    bench.core.replay(record(GroupMetadataKey("g"), value, 3), 0, -1, -1)
    bench.now_ms = 1_000
    bench.take(bench.core.loaded(bench.context()))
    assert sorted(bench.timers.values()) == [8_000, 10_000]
