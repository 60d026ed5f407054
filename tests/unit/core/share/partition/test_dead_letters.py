"""Records that a group gives up, in a group with a dead-letter queue: written down, sent, finished."""

from __future__ import annotations

import pytest

from ottla.core.share.partition import SharePartitionSettings
from ottla.core.share.partition.events import (
    DeadLetters,
    DeadLettersSent,
    Drop,
    LogStartMoved,
    StateBatch,
    WriteDone,
    WriteFailed,
)
from ottla.core.share.partition.states import Cause
from ottla.wire.errors import ErrorCode
from tests.unit.core.share.partition.bench import Bench

GAP, ACCEPT, RELEASE, REJECT = (0,), (1,), (2,), (3,)
LOCK_MS = 30_000
QUEUE = SharePartitionSettings(delivery_count_limit=2, has_dead_letters=True)


def written(bench: Bench) -> list[StateBatch]:
    return [batch for write in bench.writes for batch in write.batches]


def test_a_rejected_record() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    assert bench.acknowledge((3, 4, REJECT)) == ErrorCode.NONE
    assert written(bench) == [(3, 4, 3, 1)]
    assert bench.letters == [DeadLetters(3, 4, 1, Cause.REJECTED)]
    assert bench.writes[-1].delivery_complete_count == 0
    bench.step(DeadLettersSent(3, 4))
    assert written(bench) == [(3, 4, 3, 1), (3, 4, 4, 1)]
    assert bench.writes[-1].delivery_complete_count == 2
    assert bench.window == [(0, 2, 1), (3, 4, 4), (5, 9, 1)]


def test_nothing_is_sent_before_it_is_written_down() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.writes_at_once = False
    assert bench.acknowledge((3, 4, REJECT)) is None
    assert bench.letters == []
    bench.step(WriteDone(bench.held_back[0].write_id))
    assert len(bench.letters) == 1


def test_a_rejection_that_cannot_be_written_down_is_none() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((3, 4, REJECT))
    bench.step(WriteFailed(bench.held_back[0].write_id, ErrorCode.NOT_COORDINATOR))
    assert (bench.letters, bench.window) == ([], [(0, 9, 1)])


@pytest.mark.parametrize("kind", [GAP, ACCEPT])
def test_what_is_no_dead_letter(kind: tuple[int, ...]) -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.acknowledge((3, 4, kind))
    assert bench.letters == []


def test_a_group_without_a_queue_archives_at_once() -> None:
    bench = Bench((0, 9))
    bench.fetch()
    bench.acknowledge((3, 4, REJECT))
    assert (bench.letters, written(bench)) == ([], [(3, 4, 4, 1)])


def at_limit() -> Bench:
    """All have been delivered once and are held for the second and last time."""
    bench = Bench((0, 3), settings=QUEUE)
    bench.fetch()
    bench.release()
    bench.fetch()
    assert bench.letters == []
    bench.writes.clear()
    return bench


def test_released_at_the_limit() -> None:
    bench = at_limit()
    bench.acknowledge((0, 1, RELEASE), (2, 2, REJECT), (3, 3, ACCEPT))
    assert bench.letters == [
        DeadLetters(0, 1, 2, Cause.DELIVERY_LIMIT),
        DeadLetters(2, 2, 2, Cause.REJECTED),
    ]
    assert written(bench) == [(0, 2, 3, 2), (3, 3, 2, 2)]


def test_session_closed_at_the_limit() -> None:
    bench = at_limit()
    bench.release()
    assert bench.letters == [DeadLetters(0, 3, 2, Cause.DELIVERY_LIMIT)]
    assert written(bench) == [(0, 3, 3, 2)]


def test_lock_expired_at_the_limit() -> None:
    bench = at_limit()
    bench.advance(LOCK_MS)
    assert bench.letters == [DeadLetters(0, 3, 2, Cause.DELIVERY_LIMIT)]
    bench.step(DeadLettersSent(0, 3))
    assert written(bench) == [(0, 3, 3, 2), (0, 3, 4, 2)]
    assert (bench.partition.window.start, bench.window) == (4, [])


def test_lock_expired_and_nothing_could_be_written_down() -> None:
    bench = at_limit()
    bench.writes_at_once = False
    bench.advance(LOCK_MS)
    assert bench.letters == []
    bench.step(WriteFailed(bench.held_back[0].write_id, ErrorCode.NOT_COORDINATOR))
    assert bench.letters == [DeadLetters(0, 3, 2, Cause.DELIVERY_LIMIT)]


def test_what_is_on_its_way_holds_up_the_window_and_is_nobodys() -> None:
    bench = Bench((0, 3), (4, 7), settings=QUEUE)
    bench.fetch()
    bench.acknowledge((0, 0, REJECT), (1, 7, ACCEPT))
    assert (bench.partition.window.start, bench.partition.window.complete_count) == (0, 7)
    assert bench.fetch("b") == []
    assert bench.acknowledge((0, 0, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    bench.advance(LOCK_MS)
    assert len(bench.letters) == 1
    bench.step(DeadLettersSent(0, 0))
    assert bench.partition.window.start == 8


def test_the_next_leader_goes_on_whatever_the_group_says_now() -> None:
    kept = [StateBatch(0, 2, 3, 1), StateBatch(3, 3, 2, 1), StateBatch(4, 4, 3, 5)]
    bench = Bench((0, 9), batches=kept)
    assert bench.letters == [
        DeadLetters(0, 2, 1, Cause.REJECTED),
        DeadLetters(4, 4, 5, Cause.DELIVERY_LIMIT),
    ]
    assert bench.window == [(0, 2, 3), (3, 3, 2), (4, 4, 3)]
    bench.step(DeadLettersSent(4, 4))
    bench.step(DeadLettersSent(0, 2))
    assert (bench.partition.window.start, bench.window) == (5, [])


def test_the_log_loses_what_is_on_its_way() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.acknowledge((0, 4, REJECT))
    bench.step(LogStartMoved(5))
    bench.writes.clear()
    bench.step(DeadLettersSent(0, 4))
    assert (bench.partition.window.start, bench.window) == (5, [(0, 4, 4), (5, 9, 1)])
    assert bench.writes == []


def test_the_log_loses_what_is_being_rejected() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.writes_at_once = False
    bench.acknowledge((0, 4, REJECT))
    bench.step(LogStartMoved(7))
    bench.step(WriteDone(bench.held_back[0].write_id))
    assert not any(run.is_archiving for run in bench.partition.window.runs())


def test_sent_after_the_share_partition_is_gone() -> None:
    bench = Bench((0, 9), settings=QUEUE)
    bench.fetch()
    bench.acknowledge((0, 4, REJECT))
    bench.step(Drop())
    bench.writes.clear()
    bench.step(DeadLettersSent(0, 4))
    assert bench.writes == []
