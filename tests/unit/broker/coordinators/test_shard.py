"""Scenarios of a shard: when answers leave, and every row of the table of what can go wrong."""

from __future__ import annotations

import pytest

from ottla.broker.coordinators.shard import RETRY_MS
from ottla.core.coordinator.contract import COMMITTED, Outcome, Producer
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from tests.unit.broker.coordinators.bench import WRITE_TIMEOUT_MS, Bench
from tests.unit.broker.coordinators.ledger import Errand


@pytest.fixture
def bench() -> Bench:
    return Bench()


def check_law(bench: Bench) -> None:
    assert bench.writer.replayed().hard_state() == bench.core.hard_state()


# --- when answers leave -----------------------------------------------------------------------------------------------


def test_an_answer_that_rests_on_nothing_leaves_at_once(bench: Bench) -> None:
    bench.ask(1, "get")
    assert bench.take() == [(1, -1)]
    assert not bench.edge.is_dirty


def test_an_answer_leaves_when_its_records_are_committed(bench: Bench) -> None:
    bench.ask(1, "put", "a", 7)
    assert bench.edge.is_dirty
    assert bench.core.numbers == {"a": 7}, "the next request must see it"
    bench.write()
    bench.shard.advance()
    assert bench.take() == []
    bench.commit()
    assert bench.take() == [(1, 7)]
    check_law(bench)


def test_a_read_waits_for_what_it_saw(bench: Bench) -> None:
    bench.ask(1, "put", "a", 7)
    bench.ask(2, "get", "a")
    bench.ask(3, "get", "b")
    assert bench.take() == []
    bench.commit()
    assert bench.take() == [(1, 7), (2, 7), (3, -1)]
    bench.ask(4, "get", "a")
    assert bench.take() == [(4, 7)]


def test_a_read_waits_for_records_that_nobody_is_answered_for(bench: Bench) -> None:
    bench.ask(1, "note", "a", 7)
    bench.ask(2, "note", "b", 8)
    bench.write()
    bench.writer.high_watermark = 1
    bench.shard.advance()
    bench.ask(3, "get", "b")
    assert bench.take() == []
    bench.commit()
    assert bench.take() == [(3, 8)]


def test_answers_leave_in_the_order_of_their_offsets(bench: Bench) -> None:
    bench.ask(1, "put", "a", 1)
    bench.write()
    bench.ask(2, "put", "b", 2)
    bench.write()
    bench.writer.high_watermark = 1
    bench.shard.advance()
    assert bench.take() == [(1, 1)]
    bench.ask(3, "get", "a")
    assert bench.take() == [], "the second write may be what it saw"
    bench.commit()
    assert bench.take() == [(2, 2), (3, 1)]


def test_requests_of_one_turn_share_a_batch(bench: Bench) -> None:
    for number in range(5):
        bench.ask(number, "put", f"n{number}", number)
    bench.commit()
    (batch,) = split_batches(b"".join(bench.writer.batches))
    assert batch.record_count == 5
    assert bench.core.offsets == [0, 1, 2, 3, 4]
    assert [token for token, _ in bench.take()] == [0, 1, 2, 3, 4]
    check_law(bench)


def test_parked_requests_are_answered_together(bench: Bench) -> None:
    bench.ask(1, "park")
    bench.ask(2, "park")
    assert bench.take() == []
    bench.ask(3, "free", "a", 9)
    assert bench.take() == []
    bench.commit()
    assert bench.take() == [(1, 9), (2, 9), (3, 9)]


def test_a_tombstone_is_written_and_replayed(bench: Bench) -> None:
    bench.ask(1, "put", "a", 7)
    bench.ask(2, "drop", "a")
    bench.commit()
    assert bench.core.numbers == {}
    check_law(bench)


def test_a_shard_that_is_loaded_with_uncommitted_records_lets_nobody_read_them(bench: Bench) -> None:
    bench.ask(1, "put", "a", 7)
    bench.write()
    other = Bench()
    other.writer.batches, other.writer.log_end_offset = bench.writer.batches, bench.writer.log_end_offset
    other.shard.start()
    other.ask(2, "get", "a")
    assert other.take() == []
    other.commit()
    assert other.take() != []


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_a_full_batch_is_closed_before_the_next_result(bench: Bench) -> None:
    for number in range(4):
        bench.ask(number, "large", "a", 4_000)
    bench.commit()
    assert [batch.record_count for batch in split_batches(b"".join(bench.writer.batches))] == [2, 2]
    check_law(bench)


def test_a_result_that_is_not_atomic_is_spread_over_batches(bench: Bench) -> None:
    bench.ask(1, "many", "n", 30)
    bench.commit()
    batches = list(split_batches(b"".join(bench.writer.batches)))
    assert sum(batch.record_count for batch in batches) == 30
    assert len(batches) > 1
    assert all(batch.size_bytes <= bench.writer.batch_max_bytes for batch in batches)
    assert bench.take() == [(1, 30)]
    check_law(bench)


def test_records_that_fit_in_no_batch_are_refused_and_nothing_has_happened(bench: Bench) -> None:
    bench.ask(1, "large", "a", 20_000)
    assert bench.take() == [(1, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert bench.core.numbers == {}
    assert bench.core.settlements[0][1].error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.writer.log_end_offset == 0


# --- timers -----------------------------------------------------------------------------------------------------------


def test_a_timer_comes_when_it_is_due(bench: Bench) -> None:
    bench.ask(1, "later", "a", 100)
    assert bench.edge.next_at_ms == bench.shard.next_at_ms() == 100
    bench.advance(99)
    assert bench.take() == []
    bench.advance(1)
    bench.commit()
    assert bench.take() == [(1, -5)]
    assert bench.shard.next_at_ms() is None


def test_a_failing_timer_does_not_keep_others_from_theirs(bench: Bench) -> None:
    bench.ask(1, "later", "bug", 100)
    bench.ask(2, "later", "a", 100)
    bench.advance(100)
    bench.commit()
    assert bench.take() == [(2, -5)]


def test_a_deadline_whose_records_are_refused_comes_again(bench: Bench) -> None:
    bench.ask(1, "later", "a", 100)
    bench.writer.is_short_of_replicas = True
    bench.advance(100)
    assert bench.take() == [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert bench.shard.next_at_ms() == 100 + RETRY_MS
    bench.advance(RETRY_MS)
    assert bench.core.numbers == {}
    bench.writer.is_short_of_replicas = False
    bench.advance(RETRY_MS - 1)
    assert bench.core.numbers == {}
    bench.advance(1)
    assert bench.core.numbers == {"a": -5}
    bench.commit()
    assert bench.shard.next_at_ms() is None
    check_law(bench)


def test_a_deadline_that_waits_to_come_again_can_be_moved(bench: Bench) -> None:
    bench.ask(None, "later", "a", 100)
    bench.writer.is_short_of_replicas = True
    bench.advance(100)
    bench.writer.is_short_of_replicas = False
    bench.ask(None, "later", "a", 2 * RETRY_MS)
    bench.advance(2 * RETRY_MS - 1)
    assert bench.core.numbers == {}
    bench.advance(1)
    assert bench.core.numbers == {"a": -5}


def test_a_core_that_is_told_of_a_refused_deadline_sees_to_it_itself(bench: Bench) -> None:
    bench.ask(1, "later", "told", 100)
    bench.writer.is_short_of_replicas = True
    bench.advance(100)
    assert [(subject, outcome.error) for subject, outcome in bench.core.settlements] == [
        (("told",), ErrorCode.COORDINATOR_NOT_AVAILABLE)
    ]
    assert bench.shard.next_at_ms() is None


# --- effects and settlements ------------------------------------------------------------------------------------------


def test_effects_leave_at_the_commit_and_their_outcome_comes_back(bench: Bench) -> None:
    bench.ask(1, "errand", "a", 3)
    assert bench.edge.effects == []
    bench.commit()
    ((effect, done),) = bench.edge.effects
    assert effect == Errand("a", 3)
    done(Outcome(value=42))
    assert bench.take() == [(1, 42)]
    assert bench.core.settlements == [(Errand("a", 3), Outcome(value=42))]


def test_an_outcome_that_comes_after_the_shard_was_unloaded_is_dropped(bench: Bench) -> None:
    bench.ask(1, "errand", "a", 3)
    bench.commit()
    bench.shard.unload()
    assert bench.take() == [(1, ErrorCode.NOT_COORDINATOR)]
    bench.edge.effects[0][1](Outcome(value=42))
    assert bench.core.settlements == []


def test_after_is_settled_at_the_commit(bench: Bench) -> None:
    bench.ask(1, "after", "a", 3)
    assert bench.core.settlements == []
    bench.commit()
    assert bench.core.settlements == [(("after", "a"), COMMITTED)]
    assert bench.take() == [(1, 0)]


# --- transactions -----------------------------------------------------------------------------------------------------


def end(bench: Bench, producer_id: int, *, committed: bool, token: object = 9) -> None:
    bench.shard.end_transaction(
        Producer(producer_id, 0),
        token,
        type("Done", (), {"throttle_time_ms": 0}),
        committed=committed,
        coordinator_epoch=0,
        transaction_version=1,
    )


@pytest.mark.parametrize(("committed", "numbers"), [(True, {"a": 5, "b": 77}), (False, {"a": 5})])
def test_records_of_a_transaction_count_with_its_marker(bench: Bench, committed: bool, numbers: dict[str, int]) -> None:
    bench.ask(1, "put", "a", 5)
    bench.ask(2, "txn", "b", 77)
    bench.commit()
    assert bench.take() == [(1, 5), (2, 77)]
    assert bench.core.numbers == {"a": 5}
    batches = list(split_batches(b"".join(bench.writer.batches)))
    assert [batch.producer_id for batch in batches] == [-1, 77], "in a batch of their own"
    assert batches[1].is_transactional
    assert batches[1].base_sequence == -1
    check_law(bench)
    end(bench, 77, committed=committed)
    assert bench.take() == []
    bench.commit()
    assert bench.take() == [(9, 0)]
    assert bench.core.numbers == numbers
    check_law(bench)


def test_a_marker_stands_behind_what_the_turn_has_decided(bench: Bench) -> None:
    bench.ask(1, "txn", "b", 77)
    bench.ask(2, "put", "a", 5)
    end(bench, 77, committed=True)
    bench.ask(3, "put", "a", 6)
    bench.commit()
    assert [batch.is_control for batch in split_batches(b"".join(bench.writer.batches))] == [False, False, True, False]
    assert bench.core.offsets == [0, 1, 3]
    check_law(bench)


def test_a_refused_marker_changes_nothing(bench: Bench) -> None:
    bench.ask(1, "txn", "b", 77)
    bench.commit()
    bench.take()
    bench.writer.refusal = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(bench, 77, committed=True)
    assert bench.take() == [(9, ErrorCode.TRANSACTION_COORDINATOR_FENCED)]
    assert bench.core.open == {77: {"b": 77}}


# --- what can go wrong ------------------------------------------------------------------------------------------------


def test_a_core_may_refuse(bench: Bench) -> None:
    bench.ask(1, "reject", "a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert bench.take() == [(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)], "its own words are not translated"


def test_a_mistake_of_the_core_is_answered_and_the_shard_lives(bench: Bench) -> None:
    bench.ask(1, "bug")
    assert bench.take() == [(1, ErrorCode.UNKNOWN_SERVER_ERROR)]
    bench.ask(2, "get")
    assert bench.take() == [(2, -1)]


@pytest.mark.parametrize(
    ("refused", "answered"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_refused_append_is_answered_as_coordinators_answer(
    bench: Bench, refused: ErrorCode, answered: ErrorCode
) -> None:
    bench.writer.refusal = refused
    bench.ask(1, "txn", "a", 5)
    assert bench.take() == [(1, answered)]
    assert bench.core.open == {}, "nothing has happened"
    bench.writer.refusal = None
    bench.ask(2, "get", "a")
    assert bench.take() == [(2, -1)]


def test_a_write_that_takes_too_long_is_an_error_and_stays_applied(bench: Bench) -> None:
    bench.ask(1, "put", "a", 5)
    bench.ask(2, "errand", "a", 6)
    bench.ask(3, "get", "a")
    bench.write()
    assert bench.edge.next_at_ms == bench.shard.next_at_ms() == WRITE_TIMEOUT_MS
    bench.advance(WRITE_TIMEOUT_MS - 1)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (3, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert bench.core.numbers == {"a": 6}
    assert bench.shard.next_at_ms() is None, "nobody is told twice"
    bench.commit()
    assert bench.take() == []
    assert [effect for effect, _ in bench.edge.effects] == [Errand("a", 6)], "it was committed after all"
    check_law(bench)


def test_who_asked_for_the_outcome_hears_of_a_time_out(bench: Bench) -> None:
    bench.ask(1, "after", "a", 5)
    bench.write()
    bench.advance(WRITE_TIMEOUT_MS)
    assert bench.core.settlements == [(("after", "a"), Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE))]
    bench.commit()
    assert len(bench.core.settlements) == 1


def test_a_batch_that_cannot_be_written_loses_the_shard(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.ask(1, "put", "a", 5)
    bench.ask(2, "park")
    bench.writer.refusal = ErrorCode.KAFKA_STORAGE_ERROR
    bench.write()
    assert len(bench.edge.losses) == 1
    assert bench.take() == [(1, ErrorCode.NOT_COORDINATOR), (2, ErrorCode.NOT_COORDINATOR)]
    assert bench.writer.replayed().numbers == {}, "which is why it must be loaded again"
    assert caplog.records == [], "the disk has failed, not the coordinator"


def test_a_batch_that_is_lost_in_the_middle_of_a_result_is_answered_once(bench: Bench) -> None:
    bench.ask(1, "put", "a", 5)
    bench.writer.refusal = ErrorCode.KAFKA_STORAGE_ERROR
    bench.ask(2, "txn", "b", 5)
    assert sorted(bench.take()) == [(1, ErrorCode.NOT_COORDINATOR), (2, ErrorCode.NOT_COORDINATOR)]


def test_somebody_elses_batch_in_between_loses_the_shard(bench: Bench) -> None:
    bench.ask(1, "put", "a", 5)
    bench.writer.log_end_offset += 1
    bench.write()
    assert len(bench.edge.losses) == 1
    assert bench.take() == [(1, ErrorCode.NOT_COORDINATOR)]


def test_a_core_that_cannot_replay_its_own_records_is_lost(bench: Bench) -> None:
    bench.core.is_frail = True
    bench.ask(1, "put", "a", 5)
    assert len(bench.edge.losses) == 1
    assert bench.take() == [(1, ErrorCode.NOT_COORDINATOR)]


def test_leadership_moves(bench: Bench) -> None:
    bench.ask(1, "put", "a", 5)
    bench.ask(2, "park")
    bench.ask(3, "later", "a", 10)
    bench.write()
    bench.shard.unload()
    assert bench.take() == [(1, ErrorCode.NOT_COORDINATOR), (2, ErrorCode.NOT_COORDINATOR)]
    bench.commit()
    bench.advance(100)
    assert bench.take() == [], "an unloaded shard says nothing more"
