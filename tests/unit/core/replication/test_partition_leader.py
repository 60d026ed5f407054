"""The leader of a partition: who is in sync, and what is committed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.replication.partition_leader import AlterOutcome, InSyncChange, PartitionLeader
from ottla.wire.errors import ErrorCode

LAG_MAX_MS = 30_000
EPOCHS = {2: 20, 3: 30}
"""Of the brokers, as the metadata log knows them."""


def is_eligible(broker_id: int, broker_epoch: int) -> bool:
    return EPOCHS[broker_id] == broker_epoch


def leading(isr: tuple[int, ...] = (1, 2, 3), epoch_start_offset: int = 0, **others: Any) -> PartitionLeader:
    """Node 1 leads a partition of nodes 1 to 3 since the time 0."""
    given_ = {"leader_epoch": 5, "partition_epoch": 9, "is_eligible": is_eligible} | others
    return PartitionLeader(
        1, (1, 2, 3), isr, epoch_start_offset=epoch_start_offset, now_ms=0, lag_max_ms=LAG_MAX_MS, **given_
    )


def fetch(leader: PartitionLeader, replica_id: int, offset: int, *, end: int, now_ms: int = 0, **others: Any) -> None:
    given_ = {"log_start_offset": 0, "broker_epoch": EPOCHS[replica_id]} | others
    leader.fetched(replica_id, offset, end_offset=end, now_ms=now_ms, **given_)


# --- the high watermark -----------------------------------------------------------------------------------------------


def test_it_is_what_all_in_sync_replicas_have():
    leader = leading()
    fetch(leader, 2, 70, end=100)
    assert leader.high_watermark(0, 100, 1, 0) == 0, "3 was not heard of"
    fetch(leader, 3, 60, end=100)
    assert leader.high_watermark(0, 100, 1, 0) == 60
    assert leader.high_watermark(65, 100, 1, 0) == 65, "it never falls"


def test_it_does_not_wait_for_those_who_are_behind_for_long():
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 100, end=100)
    fetch(leader, 3, 10, end=100, now_ms=LAG_MAX_MS + 1)
    assert leader.high_watermark(0, 100, 1, LAG_MAX_MS + 1) == 100


def test_it_waits_for_one_that_is_about_to_be_in_sync():
    """Or it would run away from a follower that is added the next moment."""
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 100, end=100)
    fetch(leader, 3, 90, end=90)
    assert leader.high_watermark(0, 100, 1, 1) == 90
    fetch(leader, 3, 95, end=100, broker_epoch=29)
    assert leader.high_watermark(90, 100, 1, 1) == 100, "it must not join in the epoch of an earlier life"


def test_it_stands_still_under_the_minimum():
    leader = leading(isr=(1,))
    assert leader.high_watermark(40, 100, 2, 0) == 40
    assert leader.high_watermark(40, 100, 1, LAG_MAX_MS + 1) == 100
    assert not leading(isr=(1, 2, 3)).is_under_min_isr(5), "nobody can ask for more than there are"


def test_while_a_change_is_pending_the_larger_set_counts():
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 100, end=100)
    fetch(leader, 3, 50, end=50)
    assert leader.expand(3, high_watermark=50) == InSyncChange((1, 2, 3), (-1, 20, 30), 5, 9)
    late_ms = 2 * LAG_MAX_MS
    fetch(leader, 2, 100, end=100, now_ms=late_ms)
    assert leader.high_watermark(50, 100, 1, late_ms) == 50, "3 may be in sync"
    assert leader.is_under_min_isr(3), "and may not"
    assert leader.has_enough_replicas(3)


# --- the in-sync replicas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "epoch_start", "high_watermark", "joins"),
    [(50, 40, 50, True), (49, 40, 50, False), (50, 51, 40, False), (60, 51, 40, True)],
)
def test_a_follower_joins_when_it_has_come_far_enough(offset: int, epoch_start: int, high_watermark: int, joins: bool):
    leader = leading(isr=(1, 2), epoch_start_offset=epoch_start)
    fetch(leader, 3, offset, end=100)
    assert (leader.expand(3, high_watermark) is not None) is joins


def test_one_change_at_a_time():
    leader = leading(isr=(1,))
    fetch(leader, 2, 10, end=10)
    fetch(leader, 3, 10, end=10)
    change = leader.expand(2, 10)
    assert change is not None
    assert leader.expand(3, 10) is None
    assert leader.shrink(10, 10 * LAG_MAX_MS) is None
    assert leader.altered(change, 0, (1, 2), 5, 10) is AlterOutcome.SETTLED
    assert leader.expand(2, 10) is None, "it is in"
    assert leader.expand(3, 10) == InSyncChange((1, 2, 3), (-1, 20, 30), 5, 10)


def test_a_change_names_the_epochs_that_followers_have_fetched_in():
    """The controller must not take one that has registered anew meanwhile, and may have lost what it had."""
    leader = leading(isr=(1, 2), is_eligible=lambda broker_id, broker_epoch: True)
    fetch(leader, 3, 10, end=10, broker_epoch=29)
    change = leader.expand(3, 10)
    assert change is not None
    assert change.broker_epochs == (-1, -1, 29), "neither the leader itself nor one that has not fetched yet has one"


def test_who_has_not_caught_up_for_too_long_is_out():
    leader = leading()
    fetch(leader, 2, 100, end=100, now_ms=10)
    fetch(leader, 3, 50, end=100, now_ms=10)
    assert leader.shrink(100, LAG_MAX_MS) is None, "it has begun as one of them"
    fetch(leader, 3, 100, end=120, now_ms=20)
    assert leader.shrink(120, LAG_MAX_MS + 10) is None, "it had reached the end of its last fetch"
    change = leader.shrink(120, LAG_MAX_MS + 11)
    assert change is not None
    assert change.isr == (1,), "2 has not fetched since, and the log has grown"


def test_who_has_everything_stays_however_long_it_is_silent():
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 100, end=100)
    assert leader.shrink(100, 100 * LAG_MAX_MS) is None


@pytest.mark.parametrize(
    ("code", "outcome", "is_pending"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, AlterOutcome.SETTLED, False),
        (ErrorCode.INELIGIBLE_REPLICA, AlterOutcome.SETTLED, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.FENCED_LEADER_EPOCH, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.INVALID_UPDATE_VERSION, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.INVALID_REQUEST, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.NEW_LEADER_ELECTED, AlterOutcome.WAIT_FOR_METADATA, True),
        (ErrorCode.NOT_CONTROLLER, AlterOutcome.RETRY, True),
        (ErrorCode.STALE_BROKER_EPOCH, AlterOutcome.RETRY, True),
        (ErrorCode.REQUEST_TIMED_OUT, AlterOutcome.RETRY, True),
    ],
)
def test_a_change_that_is_refused(code: ErrorCode, outcome: AlterOutcome, is_pending: bool):
    leader = leading(isr=(1, 2))
    fetch(leader, 3, 10, end=10)
    change = leader.expand(3, 10)
    assert change is not None
    assert leader.altered(change, code, (), -1, -1) is outcome
    assert (leader.pending is not None) is is_pending
    leader.follow((1, 2, 3), (1, 2, 3), 10, 0)
    assert (leader.isr, leader.pending) == ((1, 2, 3), None), "the metadata log settles it"


def test_an_answer_that_the_metadata_log_has_overtaken_changes_nothing():
    leader = leading(isr=(1, 2))
    fetch(leader, 3, 10, end=10)
    change = leader.expand(3, 10)
    assert change is not None
    leader.follow((1, 2, 3), (1,), 12, 0)
    assert leader.altered(change, 0, (1, 2, 3), 5, 10) is AlterOutcome.SETTLED
    assert (leader.isr, leader.partition_epoch) == ((1,), 12)
    leader.follow((1, 2, 3), (1, 2, 3), 11, 0)
    assert leader.isr == (1,), "nor does an old record"


def test_replicas_come_and_go():
    leader = leading()
    fetch(leader, 2, 10, end=10)
    leader.follow((1, 2, 4), (1, 2), 10, 0)
    assert set(leader.followers) == {2, 4}
    assert leader.followers[2].end_offset == 10


def test_deleted_records_are_gone_when_all_who_live_have_followed():
    leader = leading()
    fetch(leader, 2, 100, end=100, log_start_offset=40)
    fetch(leader, 3, 100, end=100, log_start_offset=10)
    assert leader.low_watermark(50, lambda _: True) == 10
    assert leader.low_watermark(50, lambda number: number == 2) == 40
    assert leader.low_watermark(50, lambda _: False) == 50


# --- any history ------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("fetch"), st.sampled_from([2, 3]), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(0, 2 * LAG_MAX_MS)),
        st.tuples(st.just("shrink")),
        st.tuples(st.just("answer"), st.sampled_from([0, 0, 0, 107, 7, 95])),
    ),
    max_size=60,
)


@given(steps=STEPS, min_isr=st.integers(1, 3))
def test_what_is_committed_is_on_all_that_may_be_in_sync(steps: list[tuple[Any, ...]], min_isr: int):
    """Whether or not a change that is not answered was made."""
    leader, end, high_watermark, now_ms = leading(), 0, 0, 0
    ends = {2: 0, 3: 0}
    controller = (1, 2, 3)
    for what, *numbers in steps:
        if what == "append":
            end += numbers[0]
        elif what == "wait":
            now_ms += numbers[0]
        elif what == "shrink":
            leader.shrink(end, now_ms)
        elif what == "answer" and leader.pending is not None:
            if numbers[0] == 0:
                controller = leader.pending.isr
                leader.altered(leader.pending, 0, controller, 5, leader.partition_epoch + 1)
            elif leader.altered(leader.pending, numbers[0], (), -1, -1) is AlterOutcome.WAIT_FOR_METADATA:
                leader.follow((1, 2, 3), controller, leader.partition_epoch + 1, now_ms)
        elif what == "fetch":
            replica_id, more = numbers
            ends[replica_id] = min(ends[replica_id] + more, end)
            fetch(leader, replica_id, ends[replica_id], end=end, now_ms=now_ms)
            leader.expand(replica_id, high_watermark)
        before = high_watermark
        high_watermark = leader.high_watermark(high_watermark, end, min_isr, now_ms)
        assert before <= high_watermark <= end
        for each in leader.maximal_isr - {1}:
            assert ends[each] >= high_watermark, f"{each} is in sync, or may be"
        assert high_watermark == before or len(leader.isr) >= min_isr
