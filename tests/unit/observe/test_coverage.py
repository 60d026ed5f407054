"""What cannot be seen is said with the reason."""

import pytest

from ottla.health.facts import Coverage
from ottla.observe.coverage import apis_of_all, coverage

NEWEST = {
    "ListGroups": 5,
    "ConsumerGroupDescribe": 1,
    "ShareGroupDescribe": 1,
    "StreamsGroupDescribe": 1,
    "DescribeShareGroupOffsets": 1,
    "DescribeQuorum": 2,
    "DescribeLogDirs": 5,
    "ListTransactions": 2,
}


def hidden(kind: str, apis: dict[str, int], features: dict[str, int] | None = None) -> dict[str, str | None]:
    facts = [each.fact for each in coverage(kind, apis, features or {})]
    assert all(isinstance(each, Coverage) for each in facts)
    return {each.what: each.why for each in facts if isinstance(each, Coverage) and not each.visible}


@pytest.mark.parametrize("kind", ["group", "share_offsets", "quorum", "log_dirs", "transactions", "lag", "topic"])
def test_a_new_cluster_hides_nothing(kind: str):
    assert hidden(kind, NEWEST) == {}
    told = [each.fact for each in coverage(kind, NEWEST, {})]
    assert Coverage(what=kind, visible=True) in told


def test_kafka_3_knows_no_share_and_streams_groups():
    old = NEWEST | {"ListGroups": 4}
    for api in ("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe", "DescribeShareGroupOffsets"):
        del old[api]
    found = hidden("group", old)
    assert found["group.streams"] == "this cluster has no streams groups: StreamsGroupDescribe came with Kafka 4.1"
    assert set(found) == {
        "group.assignments", "group.share", "group.streams", "group.task_offsets", "group.topology_description",
    }  # fmt: skip
    assert set(hidden("share_offsets", old)) == {"share_offsets", "share_offsets.lag"}


def test_kafka_4_1_tells_no_lag_of_share_groups():
    why = "lag needs Kafka 4.2 (DescribeShareGroupOffsets v1)"
    assert hidden("share_offsets", NEWEST | {"DescribeShareGroupOffsets": 0}) == {"share_offsets.lag": why}


def test_share_groups_that_are_switched_off():
    why = "share groups are disabled (share.version 0; Kafka 4.2 enables them by default)"
    assert hidden("group", NEWEST, {"share.version": 0}) == {"group.share": why}
    assert hidden("share_offsets", NEWEST, {"share.version": 0}) == {"share_offsets": why, "share_offsets.lag": why}


def test_old_quorums_and_disks():
    assert set(hidden("quorum", NEWEST | {"DescribeQuorum": 0})) == {"quorum.fetch_times"}
    assert set(hidden("log_dirs", NEWEST | {"DescribeLogDirs": 3})) == {"log_dirs.disk"}


def test_of_several_nodes_the_oldest_counts():
    assert apis_of_all([{"A": 3, "B": 1}, {"A": 2}]) == {"A": 2, "B": -1}
    assert apis_of_all([]) == {}
