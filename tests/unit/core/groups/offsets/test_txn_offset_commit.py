"""TxnOffsetCommit: offsets that appear with a transaction's marker."""

import pytest

from ottla.core.coordinator.contract import Producer
from ottla.core.groups.offsets import TransactionalCommit
from ottla.core.groups.table import Claim
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest
from tests.unit.core.groups.offsets.bench import Bench, request_topics

NONE = ErrorCode.NONE
ORDERS_0 = ("orders", 0)


def offset_of(bench: Bench, *, stable: bool) -> tuple[int, ErrorCode]:
    (topic,) = bench.fetch("g", {"orders": [0]}, stable=stable).topics
    (partition,) = topic.partitions
    return partition.committed_offset, ErrorCode(partition.error_code)


def test_an_offset_appears_with_the_commit(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    assert bench.commit_in_transaction("g", 7, ("orders", 0, 2)) == {ORDERS_0: NONE}
    assert offset_of(bench, stable=False) == (1, NONE)
    assert offset_of(bench, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    bench.end_transaction(7, committed=True)
    assert offset_of(bench, stable=True) == (2, NONE)


def test_an_abort_leaves_what_was_there(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.end_transaction(7, committed=False)
    assert offset_of(bench, stable=True) == (1, NONE)


def test_before_the_first_commit_nothing_is_there(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    assert offset_of(bench, stable=False) == (-1, NONE)
    assert offset_of(bench, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert bench.fetch("g", None, stable=True).topics == ()
    bench.end_transaction(7, committed=False)
    assert offset_of(bench, stable=True) == (-1, NONE)


def test_the_last_offset_of_a_transaction_counts(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.commit_in_transaction("g", 7, ("orders", 0, 3))
    bench.end_transaction(7, committed=True)
    assert offset_of(bench, stable=True) == (3, NONE)


def test_a_plain_commit_in_between_is_newer(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.commit("g", ("orders", 0, 5))
    bench.end_transaction(7, committed=True)
    assert offset_of(bench, stable=True) == (5, NONE)


def test_of_two_transactions_the_newer_record_stays_however_they_end(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.commit_in_transaction("g", 8, ("orders", 0, 3))
    bench.end_transaction(8, committed=True)
    assert offset_of(bench, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    bench.end_transaction(7, committed=True)
    assert offset_of(bench, stable=True) == (3, NONE)


def test_a_transaction_touches_only_its_own_partitions(bench: Bench):
    bench.commit("g", ("orders", 1, 1))
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    (topic,) = bench.fetch("g", {"orders": [0, 1]}, stable=True).topics
    assert [each.error_code for each in topic.partitions] == [ErrorCode.UNSTABLE_OFFSET_COMMIT, NONE]
    (topic,) = bench.fetch("h", {"orders": [0]}, stable=True).topics
    assert topic.partitions[0].error_code == NONE


def test_a_deleted_offset_does_not_come_back_with_the_commit(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2), ("orders", 1, 2))
    assert bench.delete("g", {"orders": [0]}).topics[0].partitions[0].error_code == NONE
    assert offset_of(bench, stable=True) == (-1, NONE)
    bench.end_transaction(7, committed=True)
    assert bench.stored("g") == {("orders", 1): 2}


def test_a_marker_for_an_unknown_producer_changes_nothing(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    bench.end_transaction(99, committed=True)
    assert bench.stored("g") == {ORDERS_0: 1}


def test_the_next_transaction_of_a_producer_starts_with_nothing(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.end_transaction(7, committed=False)
    bench.commit_in_transaction("g", 7, ("orders", 1, 3))
    bench.end_transaction(7, committed=True)
    assert bench.stored("g") == {("orders", 1): 3}


def test_records_go_under_the_producers_id(bench: Bench):
    kind = TxnOffsetCommitRequest
    topics = request_topics(kind.TxnOffsetCommitRequestTopic, kind.TxnOffsetCommitRequestPartition, [("orders", 0, 1)])
    request = TransactionalCommit(kind("tx", "g", 7, 3, topics=topics), guard=12)
    assert bench.core.handle(request, bench.context(4)).producer == Producer(7, 3, 12, transaction_version=0)
    assert bench.core.handle(request, bench.context(5)).producer == Producer(7, 3, 12, transaction_version=2)


@pytest.mark.parametrize("version", [0, 3, 5, 6])
def test_an_empty_group_id_is_refused(bench: Bench, version: int):
    topic = b"O" * 16 if version == 6 else "orders"
    answer = bench.commit_in_transaction("", 7, (topic, 0, 2), version=version)
    assert set(answer.values()) == {ErrorCode.INVALID_GROUP_ID}


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_needs_a_group(bench: Bench, version: int, code: ErrorCode):
    topic = b"O" * 16 if version == 6 else "orders"
    answer = bench.commit_in_transaction("g", 7, (topic, 0, 2), version=version, generation_id_or_member_epoch=0)
    assert set(answer.values()) == {code}


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.STALE_MEMBER_EPOCH)])
def test_a_stale_epoch_is_told_as_the_client_knows_it(bench: Bench, version: int, code: ErrorCode):
    topic = b"O" * 16 if version == 6 else "orders"
    group = bench.group("g")
    group.refusals["commit"] = ErrorCode.STALE_MEMBER_EPOCH
    assert set(bench.commit_in_transaction("g", 7, (topic, 0, 2), version=version).values()) == {code}

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        raise Reject(ErrorCode.STALE_MEMBER_EPOCH)

    group.refusals.clear()
    group.check = check
    assert set(bench.commit_in_transaction("g", 7, (topic, 0, 2), version=version).values()) == {code}


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION]
)
def test_members_are_checked_by_their_group(bench: Bench, code: ErrorCode):
    group = bench.group("g")
    group.refusals["commit"] = code
    claim = {"generation_id_or_member_epoch": 5, "member_id": "m", "group_instance_id": "i"}
    assert bench.commit_in_transaction("g", 7, ("orders", 0, 2), **claim) == {ORDERS_0: code}
    assert group.claims == [Claim("m", 5, "i", is_transactional=True)]


def test_topics_that_cannot_be_committed_do_not_hold_up_the_others(bench: Bench):
    bench.denied.add(("READ", "bills"))
    offsets = [("orders", 0, 1), ("orders", 9, 1), ("orders", 1, 1, "x" * 4097), ("bills", 0, 1), ("nowhere", 0, 1)]
    assert bench.commit_in_transaction("g", 7, *offsets) == {
        ("orders", 0): NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ("bills", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_version_6_names_topics_by_id_and_keeps_the_id(bench: Bench):
    assert bench.commit_in_transaction("g", 7, (b"O" * 16, 0, 1), (b"X" * 16, 0, 1), version=6) == {
        (b"O" * 16, 0): NONE,
        (b"X" * 16, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    bench.end_transaction(7, committed=True)
    bench.topics.add("orders", b"N" * 16)
    (topic,) = bench.fetch("g", {b"N" * 16: [0]}, version=10).topics
    assert topic.partitions[0].committed_offset == -1


def test_before_version_6_the_record_has_no_topic_id(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 1))
    ((_, stored),) = bench.core.hard_state().items()
    assert stored[5] == bytes(16)


def test_an_aborted_transaction_leaves_its_group(bench: Bench):
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.end_transaction(7, committed=False)
    assert bench.table.get("g") is not None
