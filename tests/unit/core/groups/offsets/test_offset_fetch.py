"""OffsetFetch: each row of the table in `ottla.core.groups.offsets.fetch`."""

from typing import Any

import pytest

from ottla.core.groups.offsets.fetch import group_error
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_fetch import OffsetFetchRequest
from tests.unit.core.groups.offsets.bench import Bench

NONE = ErrorCode.NONE


def seen(group: Any) -> dict[Any, tuple[int, int, str, ErrorCode]]:
    return {
        (topic.name or topic.topic_id, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            ErrorCode(each.error_code),
        )
        for topic in group.topics
        for each in topic.partitions
    }


@pytest.fixture
def stocked(bench: Bench) -> Bench:
    bench.commit("g", ("orders", 0, 1, "a", 5), ("orders", 1, 2), ("bills", 0, 3))
    return bench


def test_what_is_not_stored_is_minus_one(stocked: Bench):
    nothing = (-1, -1, "", NONE)
    assert seen(stocked.fetch("g", {"orders": [0, 3, 99], "nowhere": [0]})) == {
        ("orders", 0): (1, 5, "a", NONE),
        ("orders", 3): nothing,
        ("orders", 99): nothing,
        ("nowhere", 0): nothing,
    }


def test_an_unknown_group_has_nothing(stocked: Bench):
    answer = stocked.fetch("other", {"orders": [0]})
    assert (answer.group_id, answer.error_code) == ("other", NONE)
    assert seen(answer) == {("orders", 0): (-1, -1, "", NONE)}
    assert stocked.fetch("other", None).topics == ()


def test_all_offsets(stocked: Bench):
    assert seen(stocked.fetch("g", None)) == {
        ("orders", 0): (1, 5, "a", NONE),
        ("orders", 1): (2, -1, "", NONE),
        ("bills", 0): (3, -1, "", NONE),
    }


def test_no_topics_are_not_all_topics(stocked: Bench):
    assert stocked.fetch("g", {}).topics == ()


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH])
@pytest.mark.parametrize("topics", [None, {"orders": [0]}])
def test_what_the_group_says_stands_for_the_group(stocked: Bench, code: ErrorCode, topics: dict[str, list[int]] | None):
    group = stocked.group("g")
    group.refusals["fetch"] = code
    answer = stocked.fetch("g", topics, member_id="m", member_epoch=3)
    assert (answer.group_id, answer.error_code, answer.topics) == ("g", code, ())
    assert group.fetchers[-1] == ("m", 3)


def test_no_member_id_is_not_an_empty_one(stocked: Bench):
    stocked.fetch("g", None)
    stocked.fetch("g", None, member_id="")
    assert stocked.group("g").fetchers == [(None, -1), ("", -1)]


def test_a_denied_topic_is_refused_by_name_and_left_out_of_all(stocked: Bench):
    stocked.denied |= {("DESCRIBE", "bills"), ("DESCRIBE", "nowhere")}
    refused = (-1, -1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer = seen(stocked.fetch("g", {"orders": [1], "bills": [0], "nowhere": [0]}))
    assert answer == {("orders", 1): (2, -1, "", NONE), ("bills", 0): refused, ("nowhere", 0): refused}
    assert {topic.name for topic in stocked.fetch("g", None).topics} == {"orders"}


def test_by_id(stocked: Bench):
    stocked.denied.add(("DESCRIBE", "bills"))
    assert seen(stocked.fetch("g", {b"O" * 16: [1], b"B" * 16: [0], b"X" * 16: [0]}, version=10)) == {
        (b"O" * 16, 1): (2, -1, "", NONE),
        (b"B" * 16, 0): (-1, -1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (b"X" * 16, 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
    }


def test_by_id_an_offset_of_an_older_topic_counts_as_nothing(bench: Bench):
    bench.commit("g", (b"O" * 16, 0, 7), version=10)
    bench.commit("g", ("orders", 1, 8), version=4, retention_time_ms=60_000)  # for whichever topic has the name
    bench.topics.add("orders", b"N" * 16)
    assert seen(bench.fetch("g", {b"N" * 16: [0, 1]}, version=10)) == {
        (b"N" * 16, 0): (-1, -1, "", NONE),
        (b"N" * 16, 1): (8, -1, "", NONE),
    }
    assert seen(bench.fetch("g", {"orders": [0]}))[("orders", 0)][0] == 7


def test_all_by_id_leaves_out_topics_that_are_gone(stocked: Bench):
    del stocked.topics.all["bills"]
    (topic,) = stocked.fetch("g", None, version=10).topics
    assert topic.topic_id == b"O" * 16
    assert len(stocked.fetch("g", None, version=9).topics) == 2


def test_a_group_error_before_version_2_stands_in_the_partitions():
    kind = OffsetFetchRequest
    group = kind.OffsetFetchRequestGroup("g", topics=(kind.OffsetFetchRequestTopics("t", partition_indexes=(0, 1)),))
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert seen(group_error(group, code, 1)) == {("t", 0): (-1, -1, "", code), ("t", 1): (-1, -1, "", code)}
    assert group_error(group, code, 1).error_code == NONE
    later = group_error(group, code, 2)
    assert (later.error_code, later.topics) == (code, ())
