"""Ranges of delivery states, combined as Kafka combines them.

What is below the start is cut off. Where ranges overlap the higher delivery count wins, then the higher state,
whichever came first. Neighbours that are alike become one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

__all__ = ["Batch", "combine", "merge"]


class Batch(NamedTuple):
    """Both ends belong to it."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def rank(self) -> tuple[int, int]:
        return self.delivery_count, self.delivery_state


_FIRST: Final[Callable[[Batch], int]] = itemgetter(0)
_LAST: Final[Callable[[Batch], int]] = itemgetter(1)


def merge(known: Sequence[Batch], new: Sequence[Batch], start_offset: int) -> list[Batch]:
    """Combine ranges that are in order with others. Only what lies near the new ones is looked at."""
    kept = _cut(known, start_offset)
    if not kept:  # as a rule: what was written before is below the start by now
        return combine(new, start_offset)
    new = [batch for batch in new if batch.last_offset >= max(start_offset, batch.first_offset)]
    if not new:
        return kept
    first = min(batch.first_offset for batch in new)
    last = max(batch.last_offset for batch in new)
    low = bisect_left(kept, first - 1, key=_LAST)
    high = bisect_left(kept, last + 2, key=_FIRST)
    kept[low:high] = combine([*kept[low:high], *new], start_offset)
    return kept


def _cut(known: Sequence[Batch], start_offset: int) -> list[Batch]:
    if not known or known[-1].last_offset < start_offset:
        return []
    low = bisect_left(known, start_offset, key=_LAST)
    kept = list(known[low:])
    if kept and kept[0].first_offset < start_offset:
        kept[0] = kept[0]._replace(first_offset=start_offset)
    return kept


def combine(batches: Iterable[Batch], start_offset: int) -> list[Batch]:
    """Ranges in any order, as ranges in order that do not overlap."""
    waiting = [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= max(start_offset, batch.first_offset)
    ]
    if len(waiting) < 2:  # as a rule: a leader writes what became of one range
        return waiting
    waiting.sort()
    if any(one.last_offset >= other.first_offset for one, other in pairwise(waiting)):
        waiting.reverse()
        return _overlaid(waiting, start_offset)
    result: list[Batch] = []
    for batch in waiting:
        _append(result, batch)
    return result


def _overlaid(waiting: list[Batch], start_offset: int) -> list[Batch]:
    """`combine`, for ranges that overlap; the first of them comes last."""
    result: list[Batch] = []
    active: list[tuple[tuple[int, int], Batch]] = []
    """Ranges that have begun, the strongest first."""
    position = start_offset
    while waiting or active:
        while active and active[0][1].last_offset < position:
            heappop(active)
        if not active:
            if not waiting:
                break
            position = max(position, waiting[-1].first_offset)
        while waiting and waiting[-1].first_offset <= position:
            batch = waiting.pop()
            heappush(active, ((-batch.delivery_count, -batch.delivery_state), batch))
        strongest = active[0][1]
        if strongest.last_offset < position:
            continue
        last = strongest.last_offset
        if waiting:
            last = min(last, waiting[-1].first_offset - 1)
        _append(result, strongest._replace(first_offset=position, last_offset=last))
        position = last + 1
    return result


def _append(result: list[Batch], batch: Batch) -> None:
    if result and result[-1].last_offset + 1 == batch.first_offset and result[-1].rank == batch.rank:
        batch = batch._replace(first_offset=result.pop().first_offset)
    result.append(batch)
