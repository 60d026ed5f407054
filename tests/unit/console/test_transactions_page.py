"""Transactions that hang, who blocks readers, and what is said without a connection."""

from __future__ import annotations

from ottla.client.open_transactions import AT_A_TIME
from ottla.console.pages.transactions import PAGE, TransactionRow, blocked_by, by_coordinator
from ottla.health.facts import Transaction, TransactionPartition
from tests.unit.console.seen import NOW_MS, context_of, loaded, shown, watcher_of


def open_in(*places: tuple[str, int, int | None], producer: int, name: str | None = None) -> Transaction:
    partitions = tuple(TransactionPartition(topic=t, partition=p, first_offset=at) for t, p, at in places)
    return Transaction(id=name, producer=producer, producer_epoch=0, started=NOW_MS - 5_000, partitions=partitions)


HANGING = open_in(("led<ger", 0, 40), producer=77)
KNOWN = open_in(("led<ger", 0, 50), ("led<ger", 1, 7), ("led<ger", 2, None), producer=5, name="loader")


def test_the_transaction_that_begins_first_blocks_a_partition():
    found = {each.p: (each.last_stable, each.id, each.hanging) for each in blocked_by([KNOWN, HANGING])}
    assert found == {0: (40, None, True), 1: (7, "loader", False)}


def test_what_hangs_is_shown_although_nobody_lists_it():
    context = context_of(watcher_of(KNOWN, HANGING))
    content = loaded(PAGE, context)
    assert [(each.id, each.state, each.producer_id, each.hanging) for each in content.data.rows] == [
        (None, "hanging", 77, True)
    ]
    assert (content.data.listed, content.data.hanging) == (None, 1)
    html = shown(PAGE, context)
    assert "Number of open transactions unknown, 1 more hangs." in html
    assert "led&lt;ger" in html
    assert "/topics/led~3Cger" in html
    assert loaded(PAGE, context_of(watcher_of(HANGING), {"state": "Ongoing"})).data.rows == []


def test_without_a_connection_the_list_says_so():
    html = shown(PAGE, context_of(watcher_of()))
    assert "Transactions cannot be listed: no connection to the cluster." in html


def listed(name: str | None, coordinator: int | None) -> TransactionRow:
    return TransactionRow(name, "Ongoing", 1, None, None, None, [], coordinator, hanging=name is None, is_old=False)


def test_as_many_coordinators_are_asked_as_a_page_may_ask():
    rows = [listed(None, None), listed("a", 1), listed("b", 2), listed("c", 3), listed("d", 1)]
    assert by_coordinator(rows, 36) == ({1: ["a", "d"], 2: ["b"], 3: ["c"]}, 0)
    assert by_coordinator(rows, 2) == ({1: ["a", "d"], 2: ["b"]}, 1)
    assert by_coordinator(rows, 0) == ({}, 4)


def test_a_coordinator_of_many_is_asked_more_than_once():
    rows = [listed(f"t{at}", 1) for at in range(AT_A_TIME + 2)]
    names, left_out = by_coordinator(rows, 1)
    assert (len(names[1]), left_out) == (AT_A_TIME, 2)
    assert by_coordinator(rows, 2)[1] == 0
