"""From the decision to the complete record: `ottla.core.txn.workflow`."""

import pytest

from ottla.core.coordinator.contract import Outcome
from ottla.core.txn.messages import Written
from ottla.core.txn.states import TransactionState
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.desk import COORDINATOR_EPOCH, T0, T1, Desk

OK = ErrorCode.NONE


def ending(desk: Desk, *, committed: bool = True) -> int:
    """A transaction in two partitions whose markers are not written yet; gives the token of its EndTxn."""
    producer = desk.begun()
    desk.add(producer, T0, T1)
    desk.performs = False
    answer = desk.end(producer, committed)
    return answer if isinstance(answer, int) else -1


def test_the_records_of_a_transaction(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0)
    desk.add(producer, T1)
    desk.end(producer, True)
    assert desk.states() == ["Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert desk.known().partitions == frozenset()


def test_where_all_is_led_here_the_answer_comes_last(desk: Desk) -> None:
    token = ending(desk)
    assert desk.state() == "PrepareCommit"
    assert desk.reply(token) is None
    desk.perform()
    assert desk.state() == "CompleteCommit"
    assert desk.reply(token) == (OK, 1000, 1)


def test_where_one_partition_is_led_elsewhere_the_answer_comes_with_the_decision() -> None:
    desk = Desk(is_led_here=lambda topic, partition: partition == 0)
    producer = desk.begun()
    desk.add(producer, T0, T1)
    desk.performs = False
    assert desk.end(producer, True) == (OK, 1000, 1)
    assert desk.state() == "PrepareCommit"
    desk.perform()
    assert desk.state() == "CompleteCommit"


def test_a_marker_that_cannot_be_written_is_tried_again_and_nobody_waits_for_it(desk: Desk) -> None:
    token = ending(desk)
    desk.perform(orders1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert desk.reply(token) == (OK, 1000, 1)
    assert desk.state() == "PrepareCommit"
    desk.advance(19)
    assert not desk.effects
    desk.advance(1)
    (effect,) = desk.effects
    assert list(effect.partitions) == [T1]
    desk.perform()
    assert desk.state() == "CompleteCommit"


def test_the_time_between_tries_grows_up_to_a_second(desk: Desk) -> None:
    ending(desk)
    waits = []
    for _ in range(9):
        desk.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        began_at_ms = desk.elapsed_ms
        while not desk.effects:
            desk.advance(10)
        waits.append(desk.elapsed_ms - began_at_ms)
    assert waits == [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]
    desk.perform()
    assert desk.state() == "CompleteCommit"


def test_the_next_transaction_s_tries_begin_anew(desk: Desk) -> None:
    ending(desk)
    desk.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.advance(20)
    desk.perform()
    desk.add((1000, 1), T0)
    desk.end((1000, 1), True)
    desk.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.advance(20)
    assert len(desk.effects) == 1


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION],
)
def test_partitions_that_need_no_marker(desk: Desk, code: ErrorCode) -> None:
    token = ending(desk)
    desk.perform(orders0=code)
    assert desk.state() == "CompleteCommit"
    assert desk.reply(token) == (OK, 1000, 1)


def test_another_coordinator_has_taken_over(desk: Desk) -> None:
    token = ending(desk)
    desk.perform(orders0=ErrorCode.TRANSACTION_COORDINATOR_FENCED, orders1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert desk.reply(token)[0] is ErrorCode.NOT_COORDINATOR
    desk.advance(5_000)
    assert not desk.effects
    assert desk.state() == "PrepareCommit"


def test_a_partition_of_which_nothing_is_told_is_asked_again(desk: Desk) -> None:
    ending(desk)
    effect = desk.effects.pop()
    desk.settle(effect, Outcome(value={T0: OK}))
    desk.advance(20)
    assert [list(each.partitions) for each in desk.effects] == [[T1]]


@pytest.mark.parametrize("committed", [True, False])
def test_a_decision_is_carried_out_after_a_restart(desk: Desk, committed: bool) -> None:
    ending(desk, committed=committed)
    desk.restart()
    (effect,) = desk.effects
    assert (effect.transactional_id, list(effect.partitions), effect.is_commit) == ("a", [T0, T1], committed)
    assert (effect.producer_id, effect.producer_epoch, effect.transaction_version) == (1000, 1, 2)
    assert effect.coordinator_epoch == COORDINATOR_EPOCH
    desk.perform()
    assert desk.state() == ("CompleteCommit" if committed else "CompleteAbort")


def test_a_restart_after_a_decision_without_partitions(desk: Desk) -> None:
    producer = desk.begun()
    desk.end(producer, False)
    desk.log.pop()  # the complete record is lost
    desk.restart()
    assert desk.state() == "CompleteAbort"


def test_nothing_is_left_to_do_after_a_complete_record(desk: Desk) -> None:
    ending(desk)
    desk.perform()
    desk.restart()
    assert not desk.effects


def test_an_outcome_that_comes_too_late(desk: Desk) -> None:
    ending(desk)
    effect = desk.effects[0]
    desk.perform()
    count = len(desk.log)
    desk.effects.append(effect)
    desk.perform()
    desk.core.transactions.clear()
    desk.effects.append(effect)
    desk.perform()
    assert len(desk.log) == count
    desk.restart()


def test_a_decision_that_cannot_be_written(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer)
    desk.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.end(producer, True) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)
    assert desk.state() == "Ongoing"
    desk.append_error = None
    assert desk.end(producer, True) == (OK, 1000, 1)


def test_a_complete_record_that_cannot_be_written_is_written_later(desk: Desk) -> None:
    token = ending(desk)
    desk.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.perform()
    assert desk.replies[token] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.state() == "PrepareCommit"
    desk.advance(25)
    desk.append_error = None
    desk.advance(40)
    assert desk.state() == "CompleteCommit"
    assert len(desk.markers) == 1
    assert desk.end((1000, 0), True) == (OK, 1000, 1)


def test_a_complete_record_that_was_only_late(desk: Desk) -> None:
    ending(desk)
    desk.perform()
    desk.settle(Written("a", TransactionState.COMPLETE_COMMIT), Outcome(ErrorCode.REQUEST_TIMED_OUT))
    desk.advance(2_000)
    assert desk.states()[-2:] == ["PrepareCommit", "CompleteCommit"]


def test_deadlines_and_failures_of_what_is_over(desk: Desk) -> None:
    """An id that was ended another way, or that is not known, needs no second try."""
    ending(desk)
    desk.perform(ErrorCode.REQUEST_TIMED_OUT)
    desk.restart()
    desk.perform()
    failed = Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for name in ("a", "nobody"):
        desk.apply(desk.core.expire(("markers", name), desk.context()))
        desk.settle(Written(name, TransactionState.COMPLETE_COMMIT), failed)
    desk.advance(5_000)
    assert not desk.effects
    assert desk.states() == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_a_deadline_that_comes_after_the_end(desk: Desk) -> None:
    ending(desk)
    effect = desk.effects[0]
    desk.perform(ErrorCode.REQUEST_TIMED_OUT)
    desk.settle(effect, Outcome(value={T0: OK, T1: OK}))
    assert desk.state() == "CompleteCommit"
    desk.advance(5_000)
    assert not desk.effects


def test_whoever_waits_for_an_end_is_known_when_the_shard_goes(desk: Desk) -> None:
    token = ending(desk)
    assert list(desk.core.unloaded()) == [token]


def test_an_abort_ends_as_an_abort_whatever_failed_before(desk: Desk) -> None:
    ending(desk, committed=False)
    desk.perform(ErrorCode.REQUEST_TIMED_OUT)
    desk.restart()
    desk.perform(orders0=ErrorCode.KAFKA_STORAGE_ERROR)
    desk.advance(20)
    desk.perform()
    assert desk.states() == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    assert not any(each.is_commit for each in desk.markers)
