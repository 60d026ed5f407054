"""Loading, locks, the ends of sessions, and two members from their first fetches to their last acknowledgements."""

from __future__ import annotations

import pytest

from ottla.core.share.partition import SharePartition, SharePartitionSettings
from ottla.core.share.partition.events import (
    Acquire,
    Drop,
    Loaded,
    LoadFailed,
    ReadBatch,
    StartResolved,
    StateBatch,
    WriteDone,
    WriteFailed,
)
from ottla.core.share.partition.partition import Phase
from ottla.core.share.partition.states import RecordState
from ottla.wire.errors import ErrorCode
from tests.unit.core.share.partition.bench import Bench

LOCK_MS = 3_000
QUICK = SharePartitionSettings(lock_duration_ms=LOCK_MS)


# --- loading ----------------------------------------------------------------------------------------------------------


def test_resolved_start_is_written_before_anything_is_handed_out() -> None:
    partition = SharePartition(7, SharePartitionSettings())
    assert partition.step(Loaded(3, -1), 0).needs_start
    (write,) = partition.step(StartResolved(40), 0).writes
    assert (write.start_offset, write.delivery_complete_count, write.batches) == (40, 0, [])
    assert not partition.can_acquire
    early = Acquire("f", "a", 40, [ReadBatch(40, 49)], 10, 10)
    assert not partition.step(early, 0).replies[0].acquired
    assert partition.step(WriteDone(write.write_id), 0).wakes
    assert partition.can_acquire
    assert partition.next_fetch_offset == 40


def test_share_partition_whose_start_cannot_be_written_is_dropped() -> None:
    partition = SharePartition(7, SharePartitionSettings())
    partition.step(Loaded(3, -1), 0)
    partition.step(StartResolved(40), 0)
    actions = partition.step(WriteFailed(0, ErrorCode.NOT_COORDINATOR), 0)
    assert actions.dropped is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    "batches",
    [
        [StateBatch(5, 9, 2, 1)],
        [StateBatch(12, 11, 2, 1)],
        [StateBatch(10, 15, 2, 1), StateBatch(15, 20, 2, 1)],
        [StateBatch(10, 15, 1, 1)],
    ],
    ids=["below the start", "reversed", "overlapping", "acquired"],
)
def test_impossible_state_fails_the_load(batches: list[StateBatch]) -> None:
    assert Bench(start=10, batches=batches).actions.dropped is ErrorCode.UNKNOWN_SERVER_ERROR


def test_failed_load_drops_the_share_partition() -> None:
    partition = SharePartition(7, SharePartitionSettings())
    assert partition.step(LoadFailed(ErrorCode.FENCED_LEADER_EPOCH), 0).dropped is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.phase is Phase.DROPPED


def test_finished_front_of_a_loaded_window_is_passed() -> None:
    bench = Bench(start=10, batches=[StateBatch(10, 14, 2, 1), StateBatch(15, 19, 4, 5), StateBatch(20, 24, 0, 1)])
    assert bench.partition.window.start == 20
    assert bench.partition.window.complete_count == 0


def test_loaded_window_that_is_finished_is_empty() -> None:
    bench = Bench(start=10, batches=[StateBatch(10, 14, 2, 1)])
    assert (bench.partition.next_fetch_offset, bench.window) == (15, [])


def test_state_after_a_crash() -> None:
    """What was written is known; acquisitions are forgotten and cost no delivery."""
    written = [
        StateBatch(5, 9, 2, 1),
        StateBatch(12, 12, 4, 1),
        StateBatch(20, 20, 0, 1),
        StateBatch(21, 21, 2, 2),
        StateBatch(22, 24, 0, 1),
        StateBatch(30, 39, 2, 1),
    ]
    bench = Bench((0, 39), batches=written)
    assert bench.fetch() == [(0, 4, 1), (10, 11, 1), (13, 19, 1), (20, 20, 2), (22, 24, 2), (25, 29, 1)]


# --- locks ------------------------------------------------------------------------------------------------------------


def test_ended_locks_are_released_with_one_write() -> None:
    bench = Bench((0, 9), (10, 19), settings=QUICK)
    bench.fetch(batch_size=10)
    assert bench.actions.due_at_ms == LOCK_MS
    bench.acknowledge((3, 3, [1]))
    bench.advance(LOCK_MS - 1)
    assert len(bench.writes) == 1
    assert bench.advance(1).wakes
    assert bench.writes[1].batches == [
        StateBatch(0, 2, RecordState.AVAILABLE, 1),
        StateBatch(4, 19, RecordState.AVAILABLE, 1),
    ]
    assert bench.actions.due_at_ms is None
    assert bench.fetch("b") == [(0, 2, 2), (4, 9, 2), (10, 19, 2)]


def test_ended_lock_counts_though_its_write_fails() -> None:
    bench = Bench((0, 9), settings=QUICK)
    bench.fetch()
    bench.writes_at_once = False
    bench.advance(LOCK_MS)
    bench.step(WriteFailed(bench.held_back[0].write_id, ErrorCode.NOT_COORDINATOR))
    assert bench.fetch("b") == [(0, 9, 2)]


def test_acknowledgement_under_way_outlives_its_lock() -> None:
    bench = Bench((0, 9), settings=QUICK)
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 9, [1]))
    assert not bench.advance(LOCK_MS).wakes
    bench.step(WriteDone(0))
    assert (bench.partition.window.start, bench.window) == (10, [])


def test_failed_acknowledgement_whose_lock_has_ended_is_released() -> None:
    bench = Bench((0, 9), settings=QUICK)
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 9, [1]))
    bench.advance(LOCK_MS)
    actions = bench.step(WriteFailed(0, ErrorCode.NOT_COORDINATOR))
    assert bench.answer(actions.replies) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert actions.writes[0].batches == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert bench.fetch("b") == [(0, 9, 2)]


def test_lock_that_ends_at_the_limit_archives() -> None:
    bench = Bench((0, 0), batches=[StateBatch(0, 0, 0, 4)], settings=QUICK)
    assert bench.fetch() == [(0, 0, 5)]
    bench.advance(LOCK_MS)
    assert bench.writes[0].batches == [StateBatch(0, 0, RecordState.ARCHIVED, 5)]
    assert (bench.writes[0].delivery_complete_count, bench.partition.window.start) == (1, 1)


def test_limit_and_duration_are_those_of_the_moment() -> None:
    bench = Bench((0, 9), settings=QUICK)
    bench.fetch()
    bench.partition.settings = SharePartitionSettings(lock_duration_ms=10 * LOCK_MS, delivery_count_limit=2)
    bench.advance(LOCK_MS)
    assert bench.fetch() == [(0, 9, 2)]
    assert bench.actions.due_at_ms == 11 * LOCK_MS
    bench.acknowledge((0, 9, [2]))
    assert bench.partition.window.start == 10


def test_locks_that_are_over_are_forgotten_in_time() -> None:
    bench = Bench(
        *((offset, offset) for offset in range(1_000)), settings=SharePartitionSettings(max_record_locks=2_000)
    )
    for offset in range(1_000):
        assert bench.fetch(max_records=1) == [(offset, offset, 1)]
        bench.acknowledge((offset, offset, [1]))
    assert len(bench.partition._locks) <= 65


# --- the end of a session ---------------------------------------------------------------------------------------------


def test_release_frees_what_one_member_holds_and_no_more() -> None:
    """KAFKA-19953: a foreign offset in between ends nothing."""
    bench = Bench((0, 9))
    bench.fetch("a")
    bench.acknowledge((4, 5, [2]))
    assert bench.fetch("b") == [(4, 5, 2)]
    bench.release("a")
    assert bench.window == [(0, 3, 0), (4, 5, 1), (6, 9, 0)]
    assert bench.writes[-1].batches == [StateBatch(0, 3, 0, 1), StateBatch(6, 9, 0, 1)]
    assert bench.acknowledge((4, 5, [1]), member_id="b") is ErrorCode.NONE


def test_release_whose_write_fails_waits_for_the_lock() -> None:
    bench = Bench((0, 9), settings=QUICK)
    bench.fetch()
    bench.writes_at_once = False
    bench.release()
    bench.step(WriteFailed(0, ErrorCode.NOT_COORDINATOR))
    assert bench.fetch("b") == []
    bench.advance(LOCK_MS)
    assert bench.fetch("b") == [(0, 9, 2)]


def test_dropped_share_partition_answers_who_waits() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 9, [1]))
    actions = bench.step(Drop())
    assert bench.answer(actions.replies) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (actions.dropped, actions.wakes) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)
    assert not bench.partition.can_acquire


def at_the_limit() -> Bench:
    """Ten records whose locks have ended at the delivery limit; the write of that has not been answered."""
    bench = Bench((0, 9), settings=SharePartitionSettings(delivery_count_limit=2))
    for _ in range(2):
        bench.fetch()
        bench.writes_at_once = bench.partition.window.entries[0].runs[0].delivery_count < 2
        bench.advance(30_000)
    assert bench.partition.window.start == 10
    return bench


def test_an_acceptance_below_a_start_that_is_not_written_waits_for_it() -> None:
    bench = at_the_limit()
    assert bench.acknowledge((0, 9, [1])) is None
    expiry, start = bench.held_back
    assert (start.start_offset, start.batches) == (10, [])
    assert not bench.step(WriteDone(expiry.write_id)).replies
    assert bench.answer(bench.step(WriteDone(start.write_id)).replies) is ErrorCode.NONE
    assert bench.acknowledge((0, 9, [1])) is ErrorCode.NONE, "it is written now"


def test_an_acceptance_below_a_start_whose_write_has_failed_writes_it() -> None:
    bench = at_the_limit()
    bench.step(WriteFailed(bench.held_back.pop().write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert bench.acknowledge((0, 9, [1])) is None
    failure = WriteFailed(bench.held_back.pop().write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.answer(bench.step(failure).replies) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.writes_at_once = True
    assert bench.acknowledge((0, 9, [1])) is ErrorCode.NONE
    assert bench.writes[-1].start_offset == 10


def test_an_acceptance_below_a_start_that_another_write_takes_along_waits_for_it() -> None:
    bench = Bench((0, 9), (10, 19), settings=SharePartitionSettings(delivery_count_limit=2))
    bench.fetch(max_records=10)
    bench.advance(30_000)
    bench.fetch(max_records=10)
    bench.advance(10_000)
    bench.fetch("b", max_records=10)
    bench.writes_at_once = False
    bench.advance(20_000)
    assert bench.partition.window.start == 10
    bench.step(WriteFailed(bench.held_back.pop().write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.acknowledge((10, 14, [1]), member_id="b")
    assert bench.writes[-1].start_offset == 10, "it goes along"
    assert bench.acknowledge((0, 9, [1])) is None, "who knows whether it arrives"
    taken_along, own = bench.held_back
    bench.step(WriteFailed(taken_along.write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert bench.answer(bench.step(WriteDone(own.write_id)).replies) is ErrorCode.NONE


def test_the_end_of_a_lock_that_could_not_be_written_goes_with_the_next_write() -> None:
    bench = Bench((0, 9), (10, 19))
    bench.fetch(max_records=10)
    bench.writes_at_once = False
    bench.advance(20_000)
    bench.fetch(max_records=10)
    bench.advance(10_000)
    failed = bench.held_back.pop()
    assert failed.batches == [StateBatch(0, 9, 0, 1)]
    bench.step(WriteFailed(failed.write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.acknowledge((12, 13, [1]))
    assert bench.writes[-1].batches == [StateBatch(0, 9, 0, 1), StateBatch(12, 13, 2, 1)]
    bench.step(WriteFailed(bench.held_back.pop().write_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    bench.acknowledge((14, 14, [1]))
    assert bench.writes[-1].batches == [StateBatch(0, 9, 0, 1), StateBatch(14, 14, 2, 1)]
    bench.step(WriteDone(bench.held_back.pop().write_id))
    bench.acknowledge((15, 15, [1]))
    assert bench.writes[-1].batches == [StateBatch(15, 15, 2, 1)]


def test_an_acceptance_wakes_only_if_the_window_was_full() -> None:
    bench = Bench((0, 49), (50, 99), (100, 109), settings=SharePartitionSettings(max_record_locks=100))
    bench.writes_at_once = False
    bench.fetch(max_records=10)
    bench.acknowledge((0, 9, [1]))
    assert not bench.step(WriteDone(bench.held_back.pop().write_id)).wakes
    bench.acknowledge((20, 29, [2]))
    assert bench.step(WriteDone(bench.held_back.pop().write_id)).wakes, "something to deliver again"
    bench.fetch()
    bench.fetch()
    assert not bench.partition.can_acquire
    bench.acknowledge((10, 19, [1]))
    assert bench.step(WriteDone(bench.held_back.pop().write_id)).wakes, "there is room again"


# --- counting ---------------------------------------------------------------------------------------------------------


def test_what_becomes_of_records_is_counted() -> None:
    bench = Bench((0, 9))
    tally = bench.partition.tally
    bench.fetch()
    bench.now_ms = 40
    bench.acknowledge((0, 3, [1, 1, 2, 3]))
    assert (tally.delivered, tally.redelivered) == (10, 0)
    assert tally.acknowledged == [0, 2, 1, 1, 0]
    assert (tally.held_ms, sum(tally.held_counts)) == (4 * 40, 4)
    bench.acknowledge((4, 5, [4]))
    assert tally.acknowledged[4] == 2
    bench.release()
    assert tally.released == 6
    bench.fetch()
    assert (tally.delivered, tally.redelivered) == (17, 7)
    bench.advance(30_000)
    assert tally.expired == 7
    assert sum(tally.held_counts) == 17


def test_refused_acknowledgement_is_not_counted() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.acknowledge((0, 3, [1]), (3, 9, [1]))
    assert not any(bench.partition.tally.acknowledged)
    assert not bench.partition.tally.held_ms


# --- two members share twelve records ---------------------------------------------------------------------------------


def test_two_members_share_twelve_records_step_by_step() -> None:
    """Run on Apache Kafka 4.3.1: lock of 3 s, limit 5. One write for locks that end together where Kafka has four."""
    bench = Bench((0, 4), (5, 8), (9, 11), settings=QUICK)
    window = bench.partition.window
    bench.now_ms = 10
    assert bench.fetch("a", max_records=6) == [(0, 8, 1)]
    assert bench.fetch("b", max_records=6) == [(9, 11, 1)]
    assert (window.start, window.end) == (0, 11)
    bench.now_ms = 20
    bench.acknowledge((0, 4, [1, 1, 1, 1, 2]))
    assert bench.writes[-1][3:] == (0, 4, [StateBatch(0, 3, 2, 1), StateBatch(4, 4, 0, 1)])
    assert window.start == 4
    bench.now_ms = 30
    assert bench.fetch("b", max_records=6) == [(4, 4, 2)]
    bench.now_ms = 1_530
    bench.acknowledge((9, 11, [4]), member_id="b")
    bench.now_ms = 3_010
    bench.advance(0)
    assert bench.writes[-1][3:] == (4, 0, [StateBatch(5, 8, 0, 1)])
    bench.advance(20)
    assert bench.writes[-1][3:] == (4, 0, [StateBatch(4, 4, 0, 2)])
    bench.now_ms = 3_530
    assert bench.acknowledge((5, 8, [1])) is ErrorCode.INVALID_RECORD_STATE
    bench.now_ms = 3_540
    assert bench.fetch("a", max_records=6) == [(4, 4, 3), (5, 8, 2)]
    bench.acknowledge((9, 11, [1, 3, 1]), member_id="b")
    assert bench.writes[-1][3:] == (4, 3, [StateBatch(9, 9, 2, 1), StateBatch(10, 10, 4, 1), StateBatch(11, 11, 2, 1)])
    bench.acknowledge((4, 4, [1]))
    assert bench.writes[-1][3:] == (4, 4, [StateBatch(4, 4, 2, 3)])
    bench.release("a")
    assert bench.writes[-1][3:] == (5, 3, [StateBatch(5, 8, 0, 2)])
    assert bench.fetch("b") == [(5, 8, 3)]
    bench.acknowledge((5, 8, [1]), member_id="b")
    assert bench.writes[-1][3:] == (5, 7, [StateBatch(5, 8, 2, 3)])
    assert (window.start, window.end, window.entries) == (12, 12, [])
    bench.log.append(ReadBatch(12, 12))
    assert bench.fetch("b") == [(12, 12, 1)]
    bench.acknowledge((12, 12, [1]), member_id="b")
    assert bench.writes[-1][3:] == (12, 1, [StateBatch(12, 12, 2, 1)])
    assert window.start == 13
