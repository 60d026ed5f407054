"""From the decision to the complete record: `ottla.core.txn.workflow`."""

import pytest

from ottla.core.coordinator.contract import Outcome
from ottla.core.txn.messages import Written
from ottla.core.txn.states import TransactionState
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.driver import COORDINATOR_EPOCH, T0, T1, Driver

OK = ErrorCode.NONE


def ending(driver: Driver, *, committed: bool = True) -> int:
    """A transaction in two partitions whose markers are not written yet; gives the token of its EndTxn."""
    producer = driver.begun()
    driver.add(producer, T0, T1)
    driver.performs = False
    answer = driver.end(producer, committed)
    return answer if isinstance(answer, int) else -1


def test_the_records_of_a_transaction(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0)
    driver.add(producer, T1)
    driver.end(producer, True)
    assert driver.states() == ["Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert driver.known().partitions == frozenset()


def test_where_all_is_led_here_the_answer_comes_last(driver: Driver) -> None:
    token = ending(driver)
    assert driver.state() == "PrepareCommit"
    assert driver.reply(token) is None
    driver.perform()
    assert driver.state() == "CompleteCommit"
    assert driver.reply(token) == (OK, 1000, 1)


def test_where_one_partition_is_led_elsewhere_the_answer_comes_with_the_decision() -> None:
    driver = Driver(is_led_here=lambda topic, partition: partition == 0)
    producer = driver.begun()
    driver.add(producer, T0, T1)
    driver.performs = False
    assert driver.end(producer, True) == (OK, 1000, 1)
    assert driver.state() == "PrepareCommit"
    driver.perform()
    assert driver.state() == "CompleteCommit"


def test_a_marker_that_cannot_be_written_is_tried_again_and_nobody_waits_for_it(driver: Driver) -> None:
    token = ending(driver)
    driver.perform(orders1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert driver.reply(token) == (OK, 1000, 1)
    assert driver.state() == "PrepareCommit"
    driver.advance(19)
    assert not driver.effects
    driver.advance(1)
    (effect,) = driver.effects
    assert list(effect.partitions) == [T1]
    driver.perform()
    assert driver.state() == "CompleteCommit"


def test_the_time_between_tries_grows_up_to_a_second(driver: Driver) -> None:
    ending(driver)
    waits = []
    for _ in range(9):
        driver.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        began_at_ms = driver.elapsed_ms
        while not driver.effects:
            driver.advance(10)
        waits.append(driver.elapsed_ms - began_at_ms)
    assert waits == [20, 40, 80, 160, 320, 640, 1000, 1000, 1000]
    driver.perform()
    assert driver.state() == "CompleteCommit"


def test_the_next_transaction_s_tries_begin_anew(driver: Driver) -> None:
    ending(driver)
    driver.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    driver.advance(20)
    driver.perform()
    driver.add((1000, 1), T0)
    driver.end((1000, 1), True)
    driver.perform(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    driver.advance(20)
    assert len(driver.effects) == 1


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION],
)
def test_partitions_that_need_no_marker(driver: Driver, code: ErrorCode) -> None:
    token = ending(driver)
    driver.perform(orders0=code)
    assert driver.state() == "CompleteCommit"
    assert driver.reply(token) == (OK, 1000, 1)


def test_another_coordinator_has_taken_over(driver: Driver) -> None:
    token = ending(driver)
    driver.perform(orders0=ErrorCode.TRANSACTION_COORDINATOR_FENCED, orders1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert driver.reply(token)[0] is ErrorCode.NOT_COORDINATOR
    driver.advance(5_000)
    assert not driver.effects
    assert driver.state() == "PrepareCommit"


def test_a_partition_of_which_nothing_is_told_is_asked_again(driver: Driver) -> None:
    ending(driver)
    effect = driver.effects.pop()
    driver.settle(effect, Outcome(value={T0: OK}))
    driver.advance(20)
    assert [list(each.partitions) for each in driver.effects] == [[T1]]


@pytest.mark.parametrize("committed", [True, False])
def test_a_decision_is_carried_out_after_a_restart(driver: Driver, committed: bool) -> None:
    ending(driver, committed=committed)
    driver.restart()
    (effect,) = driver.effects
    assert (effect.transactional_id, list(effect.partitions), effect.is_commit) == ("a", [T0, T1], committed)
    assert (effect.producer_id, effect.producer_epoch, effect.transaction_version) == (1000, 1, 2)
    assert effect.coordinator_epoch == COORDINATOR_EPOCH
    driver.perform()
    assert driver.state() == ("CompleteCommit" if committed else "CompleteAbort")


def test_a_restart_after_a_decision_without_partitions(driver: Driver) -> None:
    producer = driver.begun()
    driver.end(producer, False)
    driver.log.pop()  # the complete record is lost
    driver.restart()
    assert driver.state() == "CompleteAbort"


def test_nothing_is_left_to_do_after_a_complete_record(driver: Driver) -> None:
    ending(driver)
    driver.perform()
    driver.restart()
    assert not driver.effects


def test_an_outcome_that_comes_too_late(driver: Driver) -> None:
    ending(driver)
    effect = driver.effects[0]
    driver.perform()
    count = len(driver.log)
    driver.effects.append(effect)
    driver.perform()
    driver.core.transactions.clear()
    driver.effects.append(effect)
    driver.perform()
    assert len(driver.log) == count
    driver.restart()


def test_a_decision_that_cannot_be_written(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer)
    driver.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.end(producer, True) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)
    assert driver.state() == "Ongoing"
    driver.append_error = None
    assert driver.end(producer, True) == (OK, 1000, 1)


def test_a_complete_record_that_cannot_be_written_is_written_later(driver: Driver) -> None:
    token = ending(driver)
    driver.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.perform()
    assert driver.replies[token] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.state() == "PrepareCommit"
    driver.advance(25)
    driver.append_error = None
    driver.advance(40)
    assert driver.state() == "CompleteCommit"
    assert len(driver.markers) == 1
    assert driver.end((1000, 0), True) == (OK, 1000, 1)


def test_a_complete_record_that_was_only_late(driver: Driver) -> None:
    ending(driver)
    driver.perform()
    driver.settle(Written("a", TransactionState.COMPLETE_COMMIT), Outcome(ErrorCode.REQUEST_TIMED_OUT))
    driver.advance(2_000)
    assert driver.states()[-2:] == ["PrepareCommit", "CompleteCommit"]


def test_deadlines_and_failures_of_what_is_over(driver: Driver) -> None:
    """An id that was ended another way, or that is not known, needs no second try."""
    ending(driver)
    driver.perform(ErrorCode.REQUEST_TIMED_OUT)
    driver.restart()
    driver.perform()
    failed = Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for name in ("a", "nobody"):
        driver.apply(driver.core.expire(("markers", name), driver.context()))
        driver.settle(Written(name, TransactionState.COMPLETE_COMMIT), failed)
    driver.advance(5_000)
    assert not driver.effects
    assert driver.states() == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_a_deadline_that_comes_after_the_end(driver: Driver) -> None:
    ending(driver)
    effect = driver.effects[0]
    driver.perform(ErrorCode.REQUEST_TIMED_OUT)
    driver.settle(effect, Outcome(value={T0: OK, T1: OK}))
    assert driver.state() == "CompleteCommit"
    driver.advance(5_000)
    assert not driver.effects


def test_whoever_waits_for_an_end_is_known_when_the_shard_goes(driver: Driver) -> None:
    token = ending(driver)
    assert list(driver.core.unloaded()) == [token]


def test_an_abort_ends_as_an_abort_whatever_failed_before(driver: Driver) -> None:
    ending(driver, committed=False)
    driver.perform(ErrorCode.REQUEST_TIMED_OUT)
    driver.restart()
    driver.perform(orders0=ErrorCode.KAFKA_STORAGE_ERROR)
    driver.advance(20)
    driver.perform()
    assert driver.states() == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    assert not any(each.is_commit for each in driver.markers)
