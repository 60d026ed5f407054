"""What runs by the clock, what can be looked at, and what is read from logs that others wrote."""

import logging

import pytest

from ottla.core.coordinator.contract import TopicsChange
from ottla.core.coordinator.records import record
from ottla.core.txn.messages import DescribeTransaction, Listed, ListTransactions
from ottla.core.txn.states import MAY_FOLLOW, TransactionState
from ottla.core.txn.transaction import EPOCH_MAX
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from ottla.wire.types.transaction_log import TransactionLogKey, TransactionLogValue
from tests.unit.core.txn.driver import DAY_MS, NOW_MS, T0, T1, Driver, abort_seldom

# --- time-outs --------------------------------------------------------------------------------------------------------


def test_a_transaction_that_is_open_for_too_long_is_aborted(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=1_000)
    driver.add(producer, T0, T1)
    driver.advance(9_999)
    assert driver.state() == "Ongoing"
    driver.advance(1)
    assert driver.states()[-2:] == ["PrepareAbort", "CompleteAbort"]
    assert (driver.markers[0].is_commit, driver.markers[0].producer_epoch) == (False, 1)


def test_a_transaction_may_take_exactly_its_time(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=10_000)
    driver.add(producer)
    driver.advance(10_000)
    assert driver.state() == "Ongoing"
    driver.advance(10_000)
    assert driver.state() == "CompleteAbort"


def test_a_producer_that_was_too_slow(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=1_000)
    driver.add(producer)
    driver.advance(10_000)
    assert driver.add(producer) is ErrorCode.PRODUCER_FENCED
    # Its epoch is that of a request sent again, and the transaction was not committed.
    assert driver.end(producer, True)[0] is ErrorCode.INVALID_TXN_STATE
    assert driver.end(producer, False) == (ErrorCode.NONE, 1000, 1)


def test_a_producer_that_was_too_slow_in_its_last_epoch(driver: Driver) -> None:
    producer = driver.exhausted()
    driver.add(producer)
    driver.advance(70_001)
    assert (driver.known().producer_epoch, driver.state()) == (EPOCH_MAX, "CompleteAbort")
    assert driver.end(producer, False)[0] is ErrorCode.PRODUCER_FENCED, "no end could raise the epoch that is left"
    assert driver.begun() == (1001, 0)


def test_a_producer_of_version_1_that_was_too_slow(driver_v1: Driver) -> None:
    producer = driver_v1.begun(timeout_ms=1_000)
    driver_v1.add(producer, client_version=0)
    driver_v1.advance(10_000)
    assert driver_v1.end(producer, True, version=4)[0] is ErrorCode.PRODUCER_FENCED
    assert driver_v1.add(producer, client_version=0) is ErrorCode.PRODUCER_FENCED
    assert driver_v1.known().producer_epoch == 1


def test_the_time_runs_from_the_first_partition(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=12_000)
    driver.advance(9_000)
    driver.add(producer, T0)
    driver.advance(10_000)
    driver.add(producer, T1)
    driver.advance(1_999)  # 20,999: of the looks at 10,000 and 20,000 neither found it too old
    assert driver.state() == "Ongoing"
    driver.advance(9_001)
    assert driver.state() == "CompleteAbort"


def test_transactions_are_looked_at_after_a_restart_too(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=1_000)
    driver.add(producer)
    driver.restart()
    driver.advance(10_000)
    assert driver.state() == "CompleteAbort"


def test_transactions_that_are_aborted_for_their_age_together(driver: Driver) -> None:
    for name in "abc":
        producer = driver.begun(name, timeout_ms=60_000 if name == "b" else 1_000)
        driver.add(producer, name=name)
    driver.advance(10_000)
    assert [driver.state(name) for name in "abc"] == ["CompleteAbort", "Ongoing", "CompleteAbort"]


def test_what_a_look_finds_and_cannot_write_is_found_by_the_next(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=1_000)
    driver.add(producer)
    driver.begun("b")
    driver.settings["transactional.id.expiration.ms"] = 1_000
    driver.settings["transaction.remove.expired.transaction.cleanup.interval.ms"] = 15_000
    driver.deadlines.set(("forget",), 15_000)
    driver.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.advance(19_000)
    assert (driver.state(), driver.state("b")) == ("Ongoing", "Empty")
    driver.append_error = None
    driver.advance(11_000)
    assert "CompleteAbort" in driver.states()
    assert "b" not in driver.core.transactions


# --- ids that nobody uses ---------------------------------------------------------------------------------------------


def test_ids_that_nobody_uses_are_forgotten(driver: Driver) -> None:
    abort_seldom(driver)
    for name in "abc":
        driver.begun(name)
    driver.add((1001, 0), name="b")
    driver.end((1002, 0), False, name="c")
    driver.advance(7 * DAY_MS - 3_600_000)
    assert set(driver.core.transactions) == {"a", "b", "c"}
    driver.advance(3_600_000)
    assert set(driver.core.transactions) == {"b"}
    assert driver.states("a") == ["Empty", "gone"]
    assert driver.add((1000, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.end((1000, 0), True)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_id_that_is_used_now_and_then_is_kept(driver: Driver) -> None:
    abort_seldom(driver)
    driver.begun()
    for _ in range(3):
        driver.advance(6 * DAY_MS)
        driver.begun()
    assert driver.known().producer_epoch == 3


def test_an_epoch_of_before_is_forgotten_with_its_id(driver: Driver) -> None:
    abort_seldom(driver)
    driver.begun()
    driver.begun(producer_id=1000, producer_epoch=0)
    driver.advance(8 * DAY_MS)
    driver.begun()
    assert driver.init(producer_id=1001, producer_epoch=5).error_code == ErrorCode.PRODUCER_FENCED


# --- looking ----------------------------------------------------------------------------------------------------------


def test_describing(driver: Driver) -> None:
    producer = driver.begun(timeout_ms=4_000)
    driver.add(producer, T0)
    found = driver.ask(DescribeTransaction("a"))
    assert (found.state.shown, found.timeout_ms, found.started_at_ms) == ("Ongoing", 4_000, NOW_MS)
    assert driver.ask(DescribeTransaction("b")) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert driver.ask(DescribeTransaction("")) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (ListTransactions(), "abc"),
        (ListTransactions(states=frozenset({TransactionState.EMPTY})), "a"),
        (ListTransactions(states=frozenset({TransactionState.EMPTY, TransactionState.ONGOING})), "ab"),
        (ListTransactions(states=frozenset()), ""),
        (ListTransactions(producer_ids=frozenset({1000, 1002, 7})), "ac"),
        (ListTransactions(older_than_ms=500), "ac"),
        (ListTransactions(older_than_ms=499), "abc"),
        (ListTransactions(matches=lambda name: name > "a"), "bc"),
        (ListTransactions(frozenset({TransactionState.ONGOING}), frozenset({1000})), ""),
    ],
)
def test_listing(driver: Driver, request_: ListTransactions, names: str) -> None:
    for name in "abc":
        driver.begun(name)
    driver.end((1002, 0), False, name="c")
    driver.advance(1_000)
    driver.add((1001, 0), name="b")
    driver.advance(500)
    assert "".join(each.transactional_id for each in driver.ask(request_)) == names


def test_listing_what_has_lasted_for_any_time(driver: Driver) -> None:
    driver.add(driver.begun())
    assert driver.ask(ListTransactions(older_than_ms=0)) == []
    driver.advance(1)
    assert len(driver.ask(ListTransactions(older_than_ms=0))) == 1


def test_what_a_list_tells(driver: Driver) -> None:
    driver.begun()
    assert driver.ask(ListTransactions()) == [Listed("a", 1000, TransactionState.EMPTY)]


def test_names_of_states() -> None:
    names = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert [each.shown for each in TransactionState] == names
    assert [TransactionState.of_name(name) for name in names] == list(TransactionState)
    assert TransactionState.of_name("ongoing") is None
    assert set(MAY_FOLLOW) == set(TransactionState)


# --- logs that others wrote -------------------------------------------------------------------------------------------


def test_records_of_other_kinds_and_states_are_passed_over(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.begun()
    before = driver.core.hard_state()
    driver.core.replay(record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(), 1), 9, -1, -1)
    with caplog.at_level(logging.WARNING):
        strange = TransactionLogValue(transaction_status=42)
        driver.core.replay(KeyedRecord(TransactionLogKey("a"), 0, strange, 1), 10, -1, -1)
    assert "offset 10" in caplog.text
    driver.core.replay_marker(1, 0, True)
    assert driver.core.hard_state() == before


def test_topics_may_come_and_go(driver: Driver) -> None:
    change = TopicsChange(deleted=[("orders", bytes(16))])
    assert not driver.core.topics_changed(change, driver.context()).records
