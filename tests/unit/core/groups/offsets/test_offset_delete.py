"""OffsetDelete, and offsets that go with their group or their topic."""

import pytest

from ottla.core.coordinator.contract import TopicsChange
from ottla.core.groups.table import ExpiryRule
from ottla.wire.errors import ErrorCode
from tests.unit.core.groups.offsets.bench import Bench, codes

NONE = ErrorCode.NONE


@pytest.fixture
def stocked(bench: Bench) -> Bench:
    bench.commit("g", ("orders", 0, 1), ("orders", 1, 2), ("bills", 0, 3))
    bench.commit("h", ("orders", 0, 4))
    return bench


def test_an_offset_is_deleted(stocked: Bench):
    assert codes(stocked.delete("g", {"orders": [0]})) == {("orders", 0): NONE}
    assert stocked.stored("g") == {("orders", 1): 2, ("bills", 0): 3}
    assert stocked.stored("h") == {("orders", 0): 4}


def test_what_is_not_there_is_deleted_without_a_record(stocked: Bench):
    length = len(stocked.log)
    assert codes(stocked.delete("g", {"orders": [3]})) == {("orders", 3): NONE}
    assert len(stocked.log) == length


def test_a_partition_named_twice_is_deleted_once(stocked: Bench):
    length = len(stocked.log)
    stocked.delete("g", {"orders": [0, 0]})
    assert len(stocked.log) == length + 1


def test_the_group_stays_when_its_last_offset_goes(stocked: Bench):
    stocked.delete("h", {"orders": [0]})
    assert stocked.table.get("h") is not None


@pytest.mark.parametrize(("group", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("x", ErrorCode.GROUP_ID_NOT_FOUND)])
def test_without_a_group_nothing_else_is_said(stocked: Bench, group: str, code: ErrorCode):
    answer = stocked.delete(group, {"orders": [0]})
    assert (answer.error_code, answer.topics) == (code, ())


def test_a_group_that_keeps_its_offsets(stocked: Bench):
    stocked.group("g").refusals["delete"] = ErrorCode.NON_EMPTY_GROUP
    answer = stocked.delete("g", {"orders": [0], "nowhere": [0]})
    assert (answer.error_code, answer.topics) == (ErrorCode.NON_EMPTY_GROUP, ())
    assert stocked.stored("g")[("orders", 0)] == 1


def test_topics_that_cannot_be_deleted_do_not_hold_up_the_others(stocked: Bench):
    stocked.denied.add(("READ", "bills"))
    answer = stocked.delete("g", {"orders": [0, 9], "bills": [0], "nowhere": [0]})
    assert answer.error_code == NONE
    assert codes(answer) == {
        ("orders", 0): NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bills", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_topics_that_the_group_reads_keep_their_offsets(stocked: Bench):
    stocked.group("g").subscribed = frozenset({"orders"})
    assert codes(stocked.delete("g", {"orders": [0, 9], "bills": [0]})) == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("bills", 0): NONE,
    }
    assert stocked.stored("g") == {("orders", 0): 1, ("orders", 1): 2}


def test_all_offsets_of_a_group_go_with_it_and_pending_ones_too(stocked: Bench):
    stocked.commit_in_transaction("g", 7, ("orders", 0, 9), ("orders", 3, 9))
    assert len(stocked.family.tombstones_of("g")) == 4  # one for a partition with both
    stocked.remove_group("g")
    stocked.end_transaction(7, committed=True)
    assert stocked.stored("g") == {}
    assert stocked.stored("h") == {("orders", 0): 4}
    assert stocked.family.tombstones_of("unknown") == []


def test_offsets_of_a_deleted_topic_go_in_all_groups(stocked: Bench):
    assert len(stocked.delete_topic("orders")) == 3
    assert stocked.stored("g") == {("bills", 0): 3}
    assert stocked.stored("h") == {}


def test_pending_offsets_of_a_deleted_topic_go_once(stocked: Bench):
    stocked.commit_in_transaction("g", 7, ("bills", 0, 8), ("bills", 1, 8))
    assert len(stocked.delete_topic("bills")) == 2
    stocked.end_transaction(7, committed=True)
    assert ("bills", 0) not in stocked.stored("g")


def test_offsets_of_a_new_topic_with_the_old_name_stay(bench: Bench):
    bench.commit("g", (b"O" * 16, 0, 1), version=10)
    bench.topics.add("orders", b"N" * 16)
    bench.commit("g", (b"N" * 16, 1, 2), version=10)
    assert len(bench.tell_deleted("orders", b"O" * 16)) == 1
    assert bench.stored("g") == {("orders", 1): 2}


def test_a_restart_keeps_offsets_of_topics_that_are_there(stocked: Bench):
    stocked.commit("h", ("bills", 1, 9), version=4, retention_time_ms=60_000)  # without a topic id
    before = stocked.core.hard_state()
    assert stocked.restart() == []
    assert stocked.core.hard_state() == before
    assert stocked.timers  # offsets expire from now on, too


def test_a_crash_after_the_deletion_of_a_topic_does_not_keep_its_offsets(stocked: Bench):
    stocked.commit("h", ("bills", 1, 9), version=4, retention_time_ms=60_000)
    stocked.commit_in_transaction("h", 7, ("bills", 2, 9), ("orders", 2, 9))
    del stocked.topics.all["bills"]  # and nobody is told
    stocked.topics.add("bills-2", b"C" * 16)
    assert {(record.key.group, record.key.topic, record.key.partition) for record in stocked.restart()} == {
        ("g", "bills", 0),
        ("h", "bills", 1),
        ("h", "bills", 2),
    }
    stocked.end_transaction(7, committed=True)
    assert stocked.stored("h") == {("orders", 0): 4, ("orders", 2): 9}


def test_a_crash_after_a_topic_was_replaced_drops_what_is_known_to_be_the_olds(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    bench.commit("g", ("orders", 1, 1), version=4, retention_time_ms=60_000)  # perhaps the new one's
    bench.topics.add("orders", b"N" * 16)
    (record,) = bench.restart()
    assert record.key.partition == 0


def test_offsets_of_lost_topics_are_no_part_of_what_loading_decides_for_all_groups(stocked: Bench):
    del stocked.topics.all["bills"]
    loaded = stocked.core.loaded(stocked.context())
    assert not loaded.records, "a log that refuses them would refuse the deadlines of all members, too"
    assert len(loaded.timers) == 2, "for these offsets, and for those that expire"


def test_a_deleted_topic_without_offsets_writes_nothing(bench: Bench):
    assert bench.delete_topic("bills") == []


def test_many_tombstones_need_not_stand_in_one_batch(stocked: Bench):
    change = TopicsChange(deleted=[("orders", b"O" * 16)])
    assert not stocked.core.topics_changed(change, stocked.context()).is_atomic
    stocked.group("g").rule = ExpiryRule(lambda commit_ms: 0, lambda topic: False)
    assert not stocked.core.expire(("offsets", "expire"), stocked.context()).is_atomic
