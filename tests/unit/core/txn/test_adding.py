"""Partitions of a transaction: the table of `ottla.core.txn.adding`."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.desk import NOW_MS, T0, T1, Desk


def test_the_first_partition_begins_the_transaction(desk: Desk) -> None:
    producer = desk.begun()
    desk.advance(100)
    assert desk.add(producer, T0) is ErrorCode.NONE
    known = desk.known()
    assert (known.state.shown, known.partitions, known.started_at_ms) == ("Ongoing", {T0}, NOW_MS + 100)


def test_later_partitions_do_not_move_its_beginning(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0)
    desk.advance(100)
    desk.add(producer, T1)
    assert (desk.known().partitions, desk.known().started_at_ms) == ({T0, T1}, NOW_MS)
    assert desk.known().updated_at_ms == NOW_MS + 100


def test_partitions_that_are_there_are_not_written_again(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0, T1)
    count = len(desk.log)
    assert desk.add(producer, T1) is ErrorCode.NONE
    assert desk.add(producer, T1, T0) is ErrorCode.NONE
    assert len(desk.log) == count


def test_a_complete_transaction_gives_way_to_the_next(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0)
    _, *producer = desk.end(producer, True)
    assert desk.add(tuple(producer), T1) is ErrorCode.NONE
    assert desk.known().partitions == {T1}


@pytest.mark.parametrize("ask", [Desk.add, Desk.verify])
def test_foreign_producers(desk: Desk, ask: Callable[..., Any]) -> None:
    desk.begun()
    desk.begun()
    assert ask(desk, (1000, 1), name="b") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask(desk, (999, 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ask(desk, (1000, 0)) is ErrorCode.PRODUCER_FENCED
    assert ask(desk, (1000, 2)) is ErrorCode.PRODUCER_FENCED
    assert ask(desk, (1000, 1), name="") is ErrorCode.INVALID_REQUEST
    assert desk.states() == ["Empty", "Empty"]


@pytest.mark.parametrize("committed", [True, False])
def test_while_a_transaction_ends(desk: Desk, committed: bool) -> None:
    producer = desk.begun()
    desk.add(producer)
    desk.performs = False
    desk.end(producer, committed)
    # The next transaction's epoch, the ended one's, and an id that is only put aside: all are asked to wait.
    for asking in [(1000, 1), (1000, 0), (1001, 0)]:
        assert desk.add(asking) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert desk.verify((1000, 1)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert desk.verify((1000, 0)) is ErrorCode.PRODUCER_FENCED


def test_verifying_tells_for_each_partition(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0)
    count = len(desk.log)
    assert desk.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(desk.log) == count


def test_verifying_before_anything_was_added(desk: Desk) -> None:
    producer = desk.begun()
    assert desk.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}


def test_the_record_tells_the_client_s_version(desk: Desk) -> None:
    producer = desk.begun()
    desk.ask(AddPartitions("a", *producer, frozenset({T0}), client_version=0))
    assert desk.known().client_version == 0
    desk.ask(AddPartitions("a", *producer, frozenset({T1}), client_version=2))
    assert desk.known().client_version == 2
    assert desk.ask(VerifyPartitions("a", *producer, frozenset({T1}))) == {T1: ErrorCode.NONE}
