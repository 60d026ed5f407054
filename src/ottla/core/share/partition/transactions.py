"""Which of the batches that were read belong to aborted transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["AbortedTransaction", "ReadBatch", "aborted_ranges"]


class ReadBatch(NamedTuple):
    """The head of a record batch in the log; both offsets belong to it."""

    base_offset: int
    last_offset: int
    producer_id: int = -1
    is_transactional: bool = False
    is_control: bool = False


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


def aborted_ranges(batches: Iterable[ReadBatch], aborted: Sequence[AbortedTransaction]) -> Iterator[tuple[int, int]]:
    """First and last offset of each aborted data batch, in order. Markers are no data: members answer them as gaps."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if not batch.is_transactional or batch.producer_id not in producers:
            continue
        if batch.is_control:
            producers.discard(batch.producer_id)
        else:
            yield batch.base_offset, batch.last_offset
