"""Which batches of a log belong to aborted transactions.

A Fetch response at read_committed holds the batches of aborted transactions, too, and lists those transactions:
producer and first offset (KIP-98). The batches of a producer from that offset on are aborted, until its abort marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["AbortedTransaction", "AbortedTransactions"]


class AbortedTransaction(NamedTuple):
    first_offset: int
    producer_id: int


class AbortedTransactions:
    """Takes the transactional batches of a partition, markers included, in the order of their offsets."""

    __slots__ = ("_open", "_to_come")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, reverse=True)
        self._open: set[int] = set()
        """Producers with an aborted transaction at the last offset."""

    def __bool__(self) -> bool:
        return bool(self._to_come or self._open)

    def copy(self) -> AbortedTransactions:
        copied = AbortedTransactions(())
        copied._to_come, copied._open = self._to_come.copy(), self._open.copy()
        return copied

    def is_aborted(self, producer_id: int, last_offset: int, *, is_marker: bool) -> bool:
        """Whether a transactional batch that ends at this offset is aborted data.

        A producer has one open transaction at a time, and any marker ends it. So the first marker after the begin of an
        aborted transaction is its abort marker.
        """
        while self._to_come and self._to_come[-1].first_offset <= last_offset:
            self._open.add(self._to_come.pop().producer_id)
        if is_marker:
            self._open.discard(producer_id)
        return producer_id in self._open
