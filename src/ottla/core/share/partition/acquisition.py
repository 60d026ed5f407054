"""Which offsets a fetch gets.

Records have been read at the window's next fetch offset. What is in the window and available is delivered again, lowest
offset first and before anything new; then come new offsets, up to the limits of the request and of the window. A full
window still delivers again.

Two modes. *Batch optimized* takes whole read batches and all that is available of an entry, and so may give more than
was asked for. *Record limit* gives exactly that many at most, and leaves the rest of a read batch available in the
window, never delivered.

The throttle. Records that come back again and again are given out in ever smaller portions, so that one that kills its
consumers does not take its neighbours to the delivery limit: from half of the limit on an entry is delivered by itself
and only in part, and before the last delivery an offset is alone.
"""

from __future__ import annotations

from bisect import bisect_left

from ottla.core.share.partition.events import Acquire, AcquiredRange, SharePartitionSettings
from ottla.core.share.partition.states import AcquireMode, RecordState
from ottla.core.share.partition.window import Entry, Run, Window
from ottla.wire.aborted import AbortedTransactions

__all__ = ["acquire"]

_FEWEST_DELIVERIES = 2
"""A record is delivered this often before it is suspected."""


def acquire(window: Window, request: Acquire, settings: SharePartitionSettings, now_ms: int) -> list[AcquiredRange]:
    """Acquire what a fetch may have of the batches that were read; gives it in the order of offsets."""
    if request.max_records <= 0 or not request.batches or request.batches[-1].last_offset < window.start:
        return []
    acquisition = _Acquisition(window, request, settings, now_ms)
    taken = acquisition.run()
    if request.aborted is not None:
        taken = _without_aborted(window, request, taken)
    window.advance()
    return taken


class _Acquisition:
    def __init__(self, window: Window, request: Acquire, settings: SharePartitionSettings, now_ms: int) -> None:
        self._window = window
        self._request = request
        self._limit = settings.delivery_count_limit
        self._suspect_from = max(_FEWEST_DELIVERIES, -(-settings.delivery_count_limit // 2))
        self._now_ms = now_ms
        self._lock_at_ms = now_ms + settings.lock_duration_ms
        self._is_strict = request.mode is AcquireMode.RECORD_LIMIT
        self._base = request.batches[0].base_offset
        self._last = request.batches[-1].last_offset
        self._cap = min(request.max_records, settings.max_record_locks - window.in_flight_count)
        if self._cap <= 0:
            self._confine_to_window()
        self._count = 0
        self._taken: list[AcquiredRange] = []

    def _confine_to_window(self) -> None:
        """The window is full: it may still be delivered again."""
        end = self._window.end
        self._cap = min(self._request.max_records, end - self._request.fetch_offset + 1)
        self._last = min(self._last, end)

    def run(self) -> list[AcquiredRange]:
        if self._cap <= 0:
            return []
        self._window.archive_available(self._request.fetch_offset, self._base - 1)  # compacted away
        if self._walk():
            self._window.close_gap(self._last)
        elif self._taken:
            self._window.close_gap(self._taken[-1].last_offset)
        return self._taken

    def _walk(self) -> bool:
        """Go through the window and what lies beyond; whether everything up to the last offset was looked at."""
        position = max(self._base, self._window.start)
        for entry in self._window.overlapping(self._base, self._last):
            self._fill_gap(position, entry.first - 1)
            if self._count >= self._cap or not self._take_again(entry):
                return False
            position = max(position, entry.last + 1)
        if position > self._last:
            return True
        return self._count < self._cap and self._take_new(position, self._last)

    def _fill_gap(self, first: int, last: int) -> None:
        """After a load, holes in the window are taken like new offsets."""
        gap_start = self._window.gap_start
        if gap_start is not None and max(first, gap_start) <= last and self._count < self._cap:
            self._take_new(max(first, gap_start), last)

    # --- once more ----------------------------------------------------------------------------------------------------

    def _take_again(self, entry: Entry) -> bool:
        """Take what is available of an entry; whether the fetch may go on behind it."""
        runs = [run for run in entry.overlapping(self._base, self._last) if run.is_acquirable]
        if not runs:
            return True
        if max(run.delivery_count for run in runs) >= self._suspect_from:
            if not self._count:
                self._take_suspects(entry, runs)
            return False
        for run in runs:
            if self._is_strict and self._count >= self._cap:
                break
            self._take(entry, max(run.first, self._base), self._up_to(run))
        return True

    def _up_to(self, run: Run) -> int:
        last = min(run.last, self._last)
        return min(last, max(run.first, self._base) + self._cap - self._count - 1) if self._is_strict else last

    def _take_suspects(self, entry: Entry, runs: list[Run]) -> None:
        """Deliver a part of an entry with records that have come back too often."""
        most = self._portion(entry, runs)
        if self._is_strict:
            most = min(most, self._cap)
        for run in runs:
            is_last_chance = self._limit > _FEWEST_DELIVERIES and run.delivery_count == self._limit - 1
            if self._count >= most or (is_last_chance and self._count):
                return
            first = max(run.first, self._base)
            room = 1 if is_last_chance else most - self._count
            self._take(entry, first, min(run.last, self._last, first + room - 1))
            if is_last_chance:
                return

    def _portion(self, entry: Entry, runs: list[Run]) -> int:
        """Half of an entry at first, then a quarter, and so on, by its first suspect."""
        suspect = next(run for run in runs if run.delivery_count >= self._suspect_from)
        return max(1, entry.size >> (suspect.delivery_count - self._suspect_from + 1))

    def _take(self, entry: Entry, first: int, last: int) -> None:
        runs = self._window.carve(entry, first, last)
        for run in runs:
            self._window.acquire(run, self._request.member_id, self._now_ms, self._lock_at_ms)
            self._hand_out(run.first, run.last, run.delivery_count, entry)
        entry.join(first, last)

    def _hand_out(self, first: int, last: int, delivery_count: int, entry: Entry) -> None:
        self._count += last - first + 1
        before = self._taken[-1] if self._taken else None
        if (
            before is not None
            and before.last_offset + 1 == first
            and before.first_offset >= entry.first
            and before.delivery_count == delivery_count
        ):
            self._taken[-1] = before._replace(last_offset=last)
        else:
            self._taken.append(AcquiredRange(first, last, delivery_count))

    # --- for the first time -------------------------------------------------------------------------------------------

    def _take_new(self, first: int, last: int) -> bool:
        """Take offsets that are not in the window; whether that was all of them."""
        most = self._cap - self._count
        wanted = last
        if most < last - first + 1:
            last = min(last, self._batch_end(first + most - 1))
        if self._is_strict:
            self._take_exactly(first, last, most)
        else:
            for part_first, part_last in self._parts(first, last):
                self._insert(part_first, part_last, part_last)
        return last == wanted

    def _batch_end(self, offset: int) -> int:
        """The last offset of the read batch that has an offset, or of the next one, if it is missing."""
        batches = self._request.batches
        return batches[bisect_left(batches, offset, key=lambda batch: batch.last_offset)].last_offset

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut new offsets into entries of about the size that the member wants, where read batches begin."""
        if last - first + 1 <= self._request.batch_size:
            return [(first, last)]
        parts = []
        for batch in self._request.batches:
            if batch.base_offset > last:
                break
            if batch.base_offset - first >= max(1, self._request.batch_size):
                parts.append((first, batch.base_offset - 1))
                first = batch.base_offset
        return [*parts, (first, last)]

    def _take_exactly(self, first: int, last: int, most: int) -> None:
        self._insert(first, min(last, first + most - 1), last)

    def _insert(self, first: int, acquired_last: int, last: int) -> None:
        """A new entry, acquired up to an offset, and available behind it."""
        run = Run(first, acquired_last, RecordState.AVAILABLE, 0)
        self._window.acquire(run, self._request.member_id, self._now_ms, self._lock_at_ms)
        runs = [run]
        if acquired_last < last:
            runs.append(Run(acquired_last + 1, last, RecordState.AVAILABLE, 0))
        entry = Entry(first, last, runs)
        self._window.insert(entry)
        self._hand_out(first, acquired_last, 1, entry)


# --- aborted transactions ---------------------------------------------------------------------------------------------


def _without_aborted(window: Window, request: Acquire, taken: list[AcquiredRange]) -> list[AcquiredRange]:
    """Finish what belongs to aborted transactions, in memory alone: after a load it is read and finished again.

    Markers are no data: members answer them as gaps.
    """
    transactions = AbortedTransactions(request.aborted or ())
    for first, last, producer_id, is_transactional, is_marker in request.batches:
        if not is_transactional or not transactions.is_aborted(producer_id, last, is_marker=is_marker):
            continue
        kept: list[AcquiredRange] = []
        for each in taken:
            low, high = max(first, each.first_offset), min(last, each.last_offset)
            if low > high:
                kept.append(each)
                continue
            _finish_held(window, low, high)
            if each.first_offset < low:
                kept.append(each._replace(last_offset=low - 1))
            if high < each.last_offset:
                kept.append(each._replace(first_offset=high + 1))
        taken = kept
    return taken


def _finish_held(window: Window, first: int, last: int) -> None:
    for entry in window.overlapping(first, last):
        for run in window.carve(entry, first, last):
            window.put(run, RecordState.ARCHIVED)
        entry.join(first, last)
