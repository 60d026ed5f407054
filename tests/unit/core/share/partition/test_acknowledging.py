"""What members may say about their records: the tables of sections on acknowledging, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.core.share.partition import SharePartitionSettings
from ottla.core.share.partition.acknowledgement import check_batches
from ottla.core.share.partition.events import Acknowledgement, StateBatch, WriteDone, WriteFailed
from ottla.core.share.partition.states import RecordState
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from tests.unit.core.share.partition.bench import Bench

OK = ErrorCode.NONE
NOT_ACQUIRED = ErrorCode.INVALID_RECORD_STATE
MALFORMED = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("batches", "version", "is_renew_ack"),
    [
        pytest.param([(5, 4, [1])], 2, False, id="reversed"),
        pytest.param([(0, 5, [1]), (4, 9, [1])], 2, False, id="overlapping"),
        pytest.param([(0, 5, [1]), (0, 2, [1])], 2, False, id="out of order"),
        pytest.param([(0, 5, [])], 2, False, id="no types"),
        pytest.param([(0, 5, [1, 1])], 2, False, id="wrong number of types"),
        pytest.param([(0, 0, [-1])], 2, False, id="negative type"),
        pytest.param([(0, 0, [5])], 2, True, id="unknown type"),
        pytest.param([(0, 0, [4])], 1, True, id="renewal in version 1"),
        pytest.param([(0, 0, [4])], 2, False, id="renewal that is not announced"),
    ],
)
def test_malformed_batches_are_refused(
    batches: list[tuple[int, int, Sequence[int]]], version: int, is_renew_ack: bool
) -> None:
    with pytest.raises(Reject) as refused:
        check_batches([Acknowledgement(*batch) for batch in batches], version, is_renew_ack=is_renew_ack)
    assert refused.value.code is MALFORMED


@pytest.mark.parametrize(
    "batches",
    [[(0, 5, [1]), (5, 9, [2])], [(0, 2, [0, 1, 3])], [(0, 0, [4]), (3, 4, [4, 1])], []],
    ids=["equal border", "one type for each offset", "renewals", "none"],
)
def test_wellformed_batches_pass(batches: list[tuple[int, int, Sequence[int]]]) -> None:
    check_batches([Acknowledgement(*batch) for batch in batches], 2, is_renew_ack=True)


def test_all_types_in_one_batch() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    assert bench.acknowledge((0, 5, [1, 1, 2, 3, 0, 4])) is OK
    (write,) = bench.writes
    assert write.batches == [
        StateBatch(0, 1, RecordState.ACKNOWLEDGED, 1),
        StateBatch(2, 2, RecordState.AVAILABLE, 1),
        StateBatch(3, 4, RecordState.ARCHIVED, 1),
    ]
    assert (write.start_offset, write.delivery_complete_count) == (0, 4)
    assert (write.state_epoch, write.leader_epoch) == (3, 7)
    assert bench.window == [(0, 1, 2), (2, 2, 0), (3, 4, 4), (5, 9, 1)]
    assert bench.partition.window.start == 2


@pytest.mark.parametrize(
    ("batch", "member_id", "answer"),
    [
        pytest.param((0, 4, [1]), "a", OK, id="wholly below the start"),
        pytest.param((5, 14, [1]), "a", OK, id="straddles the start"),
        pytest.param((10, 14, [1]), "a", OK, id="held"),
        pytest.param((30, 34, [1]), "a", MALFORMED, id="first offset beyond the window"),
        pytest.param((20, 30, [1]), "a", MALFORMED, id="last offset beyond the window"),
        pytest.param((15, 16, [1]), "a", NOT_ACQUIRED, id="available again"),
        pytest.param((17, 17, [1]), "a", NOT_ACQUIRED, id="already accepted"),
        pytest.param((18, 18, [1]), "a", NOT_ACQUIRED, id="already rejected"),
        pytest.param((20, 24, [1]), "b", NOT_ACQUIRED, id="held by another member"),
        pytest.param((20, 24, [4]), "a", NOT_ACQUIRED, id="renewal while renewals are off"),
    ],
)
def test_conditions(batch: tuple[int, int, Sequence[int]], member_id: str, answer: ErrorCode) -> None:
    bench = Bench((0, 9), (10, 19), (20, 29), settings=SharePartitionSettings(is_renew_enabled=False))
    bench.fetch(batch_size=10)
    bench.acknowledge((0, 9, [1]), (15, 18, [2, 2, 1, 3]))
    before, writes = bench.window, len(bench.writes)
    assert bench.acknowledge(batch, member_id=member_id) is answer
    if answer is not OK:
        assert (bench.window, len(bench.writes)) == (before, writes)


def test_offsets_below_the_first_entry() -> None:
    bench = Bench((10, 19), batches=[StateBatch(10, 19, 0, 1)], start=5)
    assert bench.acknowledge((6, 12, [1])) is NOT_ACQUIRED


def test_empty_window_holds_nothing() -> None:
    assert Bench().acknowledge((0, 0, [1])) is NOT_ACQUIRED


def test_natural_holes_are_passed_over() -> None:
    bench = Bench((0, 9), (10, 19), (30, 39))
    bench.fetch(max_records=20, batch_size=10)
    bench.fetch()
    assert bench.window == [(0, 9, 1), (10, 19, 1), (30, 39, 1)]
    assert bench.acknowledge((0, 39, [1])) is OK
    assert (bench.partition.window.start, bench.window) == (40, [])


def test_transition_under_way_keeps_others_out() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.writes_at_once = False
    assert bench.acknowledge((0, 4, [2])) is None
    assert bench.acknowledge((0, 0, [1])) is NOT_ACQUIRED
    assert bench.fetch("b") == []
    assert bench.answer(bench.step(WriteDone(bench.held_back[0].write_id)).replies) is OK
    assert bench.actions.wakes
    assert bench.fetch("b") == [(0, 4, 2)]


def test_refused_batch_rolls_back_the_ones_before_it() -> None:
    bench = Bench((0, 9), (10, 19))
    bench.fetch()
    bench.acknowledge((15, 15, [2]))
    before = bench.window
    assert bench.acknowledge((0, 4, [1]), (15, 15, [1])) is NOT_ACQUIRED
    assert (bench.window, bench.partition.window.complete_count) == (before, 0)
    assert bench.acknowledge((0, 4, [1])) is OK


def test_equal_border_of_two_batches_is_refused_as_a_whole() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    assert bench.acknowledge((0, 5, [1]), (5, 9, [1])) is NOT_ACQUIRED
    assert bench.window == [(0, 9, 1)]
    assert bench.writes == []


def test_renewal_stays_though_a_later_batch_is_refused() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.advance(20_000)
    assert bench.acknowledge((0, 0, [4]), (20, 20, [1])) is MALFORMED
    bench.advance(10_000)
    assert bench.window == [(0, 0, 1), (1, 9, 0)]
    bench.advance(20_000)
    assert bench.window == [(0, 9, 0)]


def test_renewals_keep_the_record_and_write_nothing() -> None:
    bench = Bench((0, 0), settings=SharePartitionSettings(lock_duration_ms=3_000))
    bench.fetch()
    for _ in range(10):
        bench.advance(2_000)
        assert bench.acknowledge((0, 0, [4])) is OK
        assert bench.fetch("b") == []
    assert bench.writes == []
    bench.advance(3_000)
    assert bench.fetch("b") == [(0, 0, 2)]


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_failed_write_gives_the_records_back_to_their_holder(failure: ErrorCode, answer: ErrorCode) -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 9, [1]))
    assert bench.answer(bench.step(WriteFailed(0, failure)).replies) is answer
    assert bench.window == [(0, 9, 1)]
    assert bench.partition.window.complete_count == 0
    bench.writes_at_once = True
    assert bench.acknowledge((0, 9, [1])) is OK


@pytest.mark.parametrize("failure", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH])
def test_fenced_write_drops_the_share_partition(failure: ErrorCode) -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 4, [1]))
    bench.acknowledge((5, 9, [1]))
    actions = bench.step(WriteFailed(0, failure))
    assert [reply.error for reply in actions.replies] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert actions.dropped is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert actions.wakes
    assert bench.acknowledge((0, 0, [1])) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.step(WriteDone(1)).replies == []
