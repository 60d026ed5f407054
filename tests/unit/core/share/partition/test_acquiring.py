"""Which offsets a fetch gets: the tables of measured answers, the throttle, holes after a load, transactions."""

from __future__ import annotations

import pytest

from ottla.core.share.partition import SharePartitionSettings
from ottla.core.share.partition.events import LogStartMoved, ReadBatch, StateBatch, WriteDone
from ottla.core.share.partition.states import AcquireMode, RecordState
from ottla.wire.aborted import AbortedTransaction
from tests.unit.core.share.partition.bench import Bench

TENS = ((0, 9), (10, 19), (20, 29))
STRICT = AcquireMode.RECORD_LIMIT


def tens(count: int) -> list[tuple[int, int]]:
    return [(first, first + 9) for first in range(0, 10 * count, 10)]


def test_batches_are_acquired_whole() -> None:
    bench = Bench(*TENS)
    assert bench.fetch(max_records=5) == [(0, 9, 1)]
    assert bench.fetch(max_records=15, batch_size=5) == [(10, 19, 1), (20, 29, 1)]
    assert bench.fetch() == []


def test_record_limit_acquires_exactly_so_many() -> None:
    bench = Bench((0, 19), (20, 39))
    assert bench.fetch(max_records=7, mode=STRICT) == [(0, 6, 1)]
    assert bench.partition.window.end == 19  # of the read batch, not of what was acquired
    assert bench.fetch(max_records=7, mode=STRICT) == [(7, 13, 1)]
    assert bench.fetch(max_records=7) == [(14, 19, 1), (20, 39, 1)]


def test_record_limit_splits_what_was_released_whole() -> None:
    bench = Bench(*TENS)
    bench.fetch()
    bench.release()
    assert bench.fetch(max_records=12, mode=STRICT) == [(0, 11, 2)]
    assert bench.fetch("b", max_records=500, mode=STRICT) == [(12, 29, 2)]


def test_window_counts_offsets_and_a_full_one_still_delivers_again() -> None:
    bench = Bench(*tens(12), settings=SharePartitionSettings(max_record_locks=100))
    assert bench.fetch(max_records=95, batch_size=10) == [(first, first + 9, 1) for first in range(0, 100, 10)]
    assert bench.fetch() == []
    bench.acknowledge((50, 59, [1]))
    assert bench.fetch() == []
    bench.acknowledge((20, 29, [2]))
    assert bench.fetch("b") == [(20, 29, 2)]
    assert bench.fetch() == []
    bench.acknowledge((0, 9, [1]))
    assert bench.fetch(max_records=1) == [(100, 109, 1)]


def test_two_members_get_disjoint_ranges() -> None:
    bench = Bench(*TENS)
    assert bench.fetch("a", max_records=10) == [(0, 9, 1)]
    assert bench.fetch("b", max_records=10) == [(10, 19, 1)]


def test_redelivery_goes_lowest_offset_first_and_before_new_data() -> None:
    bench = Bench(*tens(4))
    bench.fetch(max_records=30, batch_size=10)
    bench.acknowledge((20, 29, [2]))
    bench.acknowledge((5, 5, [2]))
    assert bench.partition.next_fetch_offset == 5
    assert bench.fetch("b", max_records=12) == [(5, 5, 2), (20, 29, 2), (30, 39, 1)]


def test_delivery_sizes_while_everything_is_released() -> None:
    """Limit 5, forty records: 40, 40, 40, 20, twenty times 1, 20, twenty times 1, and then all is archived."""
    bench = Bench((0, 39))
    sizes = []
    while acquired := bench.fetch():
        sizes.append(sum(last - first + 1 for first, last, _ in acquired))
        bench.release()
    assert sizes == [40, 40, 40, 20, *[1] * 20, 20, *[1] * 20]
    assert (bench.partition.window.start, bench.partition.window.entries) == (40, [])


def test_limit_of_two_isolates_nobody() -> None:
    bench = Bench((0, 3), settings=SharePartitionSettings(delivery_count_limit=2))
    for delivery_count in (1, 2):
        assert bench.fetch() == [(0, 3, delivery_count)]
        bench.acknowledge((0, 3, [2]))
    assert bench.fetch() == []
    assert bench.writes[-1].batches == [StateBatch(0, 3, RecordState.ARCHIVED, 2)]
    assert bench.partition.window.start == 4


def test_suspects_are_not_delivered_behind_others() -> None:
    bench = Bench((0, 9), (10, 19), batches=[StateBatch(0, 9, 0, 1), StateBatch(10, 19, 0, 3)])
    assert bench.fetch() == [(0, 9, 2)]
    assert bench.fetch() == [(10, 14, 4)]
    assert bench.fetch() == [(15, 19, 4)]


def test_suspects_are_delivered_in_ever_smaller_portions() -> None:
    bench = Bench(
        (0, 499), settings=SharePartitionSettings(delivery_count_limit=10), batches=[StateBatch(0, 499, 0, 5)]
    )
    assert bench.fetch() == [(0, 249, 6)]
    bench.release()
    assert bench.fetch() == [(0, 124, 7)]
    bench.release()
    assert bench.fetch(max_records=7, mode=STRICT) == [(0, 6, 8)]


def test_holes_of_a_loaded_window_are_delivered() -> None:
    loaded = [StateBatch(15, 19, RecordState.ACKNOWLEDGED, 1), StateBatch(25, 29, RecordState.AVAILABLE, 2)]
    bench = Bench((10, 34), start=10, batches=loaded)
    assert bench.partition.next_fetch_offset == 10
    assert bench.fetch() == [(10, 14, 1), (20, 24, 1), (25, 29, 3), (30, 34, 1)]
    assert bench.partition.window.gap_start is None


def test_holes_are_delivered_one_fetch_after_another() -> None:
    bench = Bench((10, 34), start=10, batches=[StateBatch(20, 24, RecordState.ACKNOWLEDGED, 1)])
    assert bench.fetch(max_records=4, mode=STRICT) == [(10, 13, 1)]
    assert bench.fetch(max_records=4, mode=STRICT) == [(14, 17, 1)]
    assert bench.fetch(max_records=4, mode=STRICT) == [(18, 19, 1), (25, 26, 1)]


def test_hole_without_records_does_not_hold_up() -> None:
    bench = Bench((15, 19), (20, 24), start=10, batches=[StateBatch(15, 19, RecordState.ACKNOWLEDGED, 1)])
    assert bench.partition.next_fetch_offset == 10
    assert bench.fetch() == [(20, 24, 1)]
    assert bench.partition.window.start == 20


def test_start_inside_a_read_batch_makes_no_overlap() -> None:
    """KAFKA-19954."""
    bench = Bench((0, 9), (10, 19), start=5, batches=[StateBatch(7, 8, RecordState.AVAILABLE, 1)])
    assert bench.fetch() == [(5, 6, 1), (7, 8, 2), (9, 19, 1)]


def test_what_was_compacted_away_is_archived() -> None:
    bench = Bench(*TENS)
    bench.fetch(batch_size=10)
    bench.release()
    del bench.log[0]
    assert bench.fetch(batch_size=10) == [(10, 19, 2), (20, 29, 2)]
    assert bench.partition.window.start == 10


def test_aborted_data_is_archived_and_markers_are_delivered() -> None:
    """Commit of 0 to 4 with its marker, abort of 6 to 9 with its marker, commit of 11 to 13 with its marker."""
    bench = Bench()
    bench.log = [
        ReadBatch(0, 4, 1, is_transactional=True),
        ReadBatch(5, 5, 1, is_transactional=True, is_control=True),
        ReadBatch(6, 9, 1, is_transactional=True),
        ReadBatch(10, 10, 1, is_transactional=True, is_control=True),
        ReadBatch(11, 13, 1, is_transactional=True),
        ReadBatch(14, 14, 1, is_transactional=True, is_control=True),
    ]
    bench.aborted = [AbortedTransaction(6, 1)]
    assert bench.fetch() == [(0, 5, 1), (10, 14, 1)]
    assert bench.writes == []
    assert bench.partition.window.complete_count == 4


def test_window_of_nothing_but_aborted_data_is_passed() -> None:
    bench = Bench()
    bench.log = [ReadBatch(0, 4, 1, is_transactional=True)]
    bench.aborted = [AbortedTransaction(0, 1)]
    assert bench.fetch() == []
    assert bench.actions.wakes
    assert bench.partition.next_fetch_offset == 5


@pytest.mark.parametrize("log_start", [25, 29, 30, 45])
def test_log_start_beyond_available_and_acquired_offsets(log_start: int) -> None:
    bench = Bench(*TENS, (30, 49))
    bench.fetch(max_records=30, batch_size=10)
    bench.acknowledge((0, 9, [2]), (20, 29, [2]))
    bench.step(LogStartMoved(log_start))
    assert bench.partition.window.start == log_start
    assert bench.acknowledge((10, 19, [1])) == 0  # below the start: over and done with
    expected = (log_start, 29, 2) if log_start < 30 else (log_start, 49, 1)
    assert bench.fetch("b", max_records=1) == [expected]
    bench.advance(30_000)
    assert all(run.first >= log_start or run.is_finished for run in bench.partition.window.runs())


def test_log_start_inside_a_batch_begins_there() -> None:
    bench = Bench((0, 9), (10, 19))
    bench.fetch(max_records=10)
    bench.step(LogStartMoved(15))
    assert bench.fetch("b") == [(15, 19, 1)]
    bench.acknowledge((15, 19, [1]), member_id="b")
    assert bench.partition.next_fetch_offset == 20
    bench.advance(30_000)
    assert bench.partition.window.entries == []


@pytest.mark.parametrize(("log_start", "next_offset"), [(12, 12), (15, 17), (20, 20)])
def test_log_start_in_a_hole_of_a_loaded_window(log_start: int, next_offset: int) -> None:
    loaded = [StateBatch(15, 16, RecordState.ACKNOWLEDGED, 1), StateBatch(22, 24, RecordState.ACKNOWLEDGED, 1)]
    bench = Bench((10, 29), start=10, batches=loaded)
    bench.step(LogStartMoved(log_start))
    assert bench.partition.next_fetch_offset == next_offset


def test_what_is_released_while_the_log_loses_it_is_not_delivered_again() -> None:
    bench = Bench((0, 9), (10, 19))
    bench.fetch(max_records=10)
    bench.writes_at_once = False
    bench.acknowledge((0, 9, [2]))
    bench.step(LogStartMoved(6))
    bench.step(WriteDone(bench.held_back[0].write_id))
    assert bench.window == [(0, 5, 4), (6, 9, 0)]
    assert bench.fetch("b", max_records=1) == [(6, 9, 2)]


def test_log_start_does_not_go_back() -> None:
    bench = Bench(start=20)
    bench.step(LogStartMoved(10))
    assert bench.partition.window.start == 20


@pytest.mark.parametrize(("max_records", "spans"), [(0, TENS), (5, ())])
def test_nothing_is_acquired_of_nothing(max_records: int, spans: tuple[tuple[int, int], ...]) -> None:
    bench = Bench(*spans)
    assert bench.fetch(max_records=max_records) == []
    assert bench.window == []
