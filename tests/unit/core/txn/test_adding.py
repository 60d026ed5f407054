"""Partitions of a transaction: the table of `ottla.core.txn.add_partitions`."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.driver import NOW_MS, T0, T1, Driver


def test_the_first_partition_begins_the_transaction(driver: Driver) -> None:
    producer = driver.begun()
    driver.advance(100)
    assert driver.add(producer, T0) is ErrorCode.NONE
    known = driver.known()
    assert (known.state.shown, known.partitions, known.started_at_ms) == ("Ongoing", {T0}, NOW_MS + 100)


def test_later_partitions_do_not_move_its_beginning(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0)
    driver.advance(100)
    driver.add(producer, T1)
    assert (driver.known().partitions, driver.known().started_at_ms) == ({T0, T1}, NOW_MS)
    assert driver.known().updated_at_ms == NOW_MS + 100


def test_partitions_that_are_there_are_not_written_again(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0, T1)
    count = len(driver.log)
    assert driver.add(producer, T1) is ErrorCode.NONE
    assert driver.add(producer, T1, T0) is ErrorCode.NONE
    assert len(driver.log) == count


def test_a_complete_transaction_gives_way_to_the_next(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0)
    _, *producer = driver.end(producer, True)
    assert driver.add(tuple(producer), T1) is ErrorCode.NONE
    assert driver.known().partitions == {T1}


@pytest.mark.parametrize("ask", [Driver.add, Driver.verify])
def test_foreign_producers(driver: Driver, ask: Callable[..., Any]) -> None:
    driver.begun()
    driver.begun()
    assert ask(driver, (1000, 1), name="b") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask(driver, (999, 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask(driver, (1000, 0)) is ErrorCode.PRODUCER_FENCED
    assert ask(driver, (1000, 2)) is ErrorCode.PRODUCER_FENCED
    assert ask(driver, (1000, 1), name="") is ErrorCode.INVALID_REQUEST
    assert driver.states() == ["Empty", "Empty"]


@pytest.mark.parametrize("committed", [True, False])
def test_while_a_transaction_ends(driver: Driver, committed: bool) -> None:
    producer = driver.begun()
    driver.add(producer)
    driver.performs = False
    driver.end(producer, committed)
    # The next transaction's epoch, the ended one's, and an id that is only put aside: all are asked to wait.
    for asking in [(1000, 1), (1000, 0), (1001, 0)]:
        assert driver.add(asking) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.verify((1000, 1)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.verify((1000, 0)) is ErrorCode.PRODUCER_FENCED


def test_verifying_tells_for_each_partition(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0)
    count = len(driver.log)
    assert driver.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(driver.log) == count


def test_verifying_before_anything_was_added(driver: Driver) -> None:
    producer = driver.begun()
    assert driver.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}


def test_the_record_tells_the_client_s_version(driver: Driver) -> None:
    producer = driver.begun()
    driver.ask(AddPartitions("a", *producer, frozenset({T0}), client_version=0))
    assert driver.known().client_version == 0
    driver.ask(AddPartitions("a", *producer, frozenset({T1}), client_version=2))
    assert driver.known().client_version == 2
    assert driver.ask(VerifyPartitions("a", *producer, frozenset({T1}))) == {T1: ErrorCode.NONE}
