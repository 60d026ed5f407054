"""The outcomes of the deliveries of one share partition, from the records of its state in order.

Plain Python, without Spark. An update has the states that changed, and a snapshot all that are not finished, so the
difference to the records before is counted. The first snapshot only gives the initial state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, NamedTuple

from ottla.spark.jobs.params import Params

__all__ = ["Batch", "ShareFold", "ShareLimits", "StateRecord", "limits_of"]

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
POISON_MAX: Final = 100
COUNTS: Final = 5
"""Deliveries are counted by their number; those from this one on are counted together."""
OFFSETS_MAX: Final = 100_000
"""No share partition has that many records in flight (Kafka allows 10,000)."""
_TOLERANCE: Final = 0.1
_TOLERANCE_MS: Final = 500


class Batch(NamedTuple):
    first: int
    last: int
    state: int
    deliveries: int


class StateRecord(NamedTuple):
    """A record of the state topic. The start offset is None if an update does not change it."""

    is_snapshot: bool
    start: int | None
    batches: tuple[Batch, ...]
    state_epoch: int | None = None


class ShareLimits(NamedTuple):
    delivery_count: int = 5
    lock_ms: int = 30_000

    @property
    def suspect_count(self) -> int:
        """A record that was delivered this often counts as poison, though it may still be accepted."""
        return max(2, ceil(self.delivery_count / 2))


def limits_of(params: Params, cluster: str, group: str) -> ShareLimits:
    """The limits of a share group: its own, else those of all groups of the cluster, else the default."""
    known = params.share_limits.get((cluster, group)) or params.share_limits.get((cluster, ""))
    return ShareLimits() if known is None else ShareLimits(*known)


@dataclass(slots=True)
class _Window:
    accepted: int = 0
    released: int = 0
    archived: int = 0
    delivered: int = 0
    redelivered: int = 0
    expiries: int = 0
    max_count: int = 0
    by_count: list[int] = field(default_factory=lambda: [0] * COUNTS)
    poison: list[int] = field(default_factory=list)
    start: int | None = None
    start_moved: int = 0
    stalled_s: float | None = None
    lag: int | None = None
    topic: str | None = None
    is_from_records: bool = False
    """Whether records were taken before the end of the window, not only samples of them."""


class _Written(NamedTuple):
    state: int
    deliveries: int
    ts: int


class ShareFold:
    """Takes records and samples of a share partition, ordered by time, and makes one row for each window."""

    def __init__(self, window_ms: int, limits: ShareLimits) -> None:
        self._window_ms = window_ms
        self._limits = limits
        self.topic: str | None = None
        """The name of the topic, as samples have it."""
        self.is_from_records = False
        """Whether it has taken records, not only samples of them."""
        self._windows: dict[int, _Window] = {}
        self._touched: set[int] = set()
        """The windows that may have changed since `touched` was last asked."""
        self._written: dict[int, _Written] = {}
        self._expired_at: dict[int, int] = {}
        self._start: int | None = None
        self._state_epoch: int | None = None
        self._has_records = False
        self._still_since: int | None = None

    def deleted(self) -> None:
        """The partition's state was deleted: the next record begins a new one."""
        self._touched.update(map(self._start_of, self._written.values()))
        self._written.clear()
        self._expired_at.clear()
        self._start, self._state_epoch, self._has_records = None, None, False

    def take_record(self, ts: int, record: StateRecord) -> None:
        if record.state_epoch is not None:
            if self._state_epoch is not None and record.state_epoch != self._state_epoch:
                self.deleted()  # offsets were reset: earlier states are void
            self._state_epoch = record.state_epoch
        is_base = not self._has_records and record.is_snapshot
        window = self._window(ts)
        settled = False
        for batch in record.batches:
            settled |= self._take_batch(ts, batch, None if is_base else window)
        moved = self._moves(record.start, window)
        if (settled or moved) and self._still_since is not None:
            self._still_since = ts
        self._has_records = True

    def take_offsets(self, ts: int, start: int | None, lag: int | None) -> None:
        """A sample of the start offset and the lag."""
        window = self._window(ts)
        moved = self._moves(start, window)
        if not lag:
            self._still_since = None
        elif moved or self._still_since is None:
            self._still_since = ts
        still_ms = 0 if self._still_since is None else ts - self._still_since
        window.stalled_s = still_ms / 1000 if still_ms >= 2 * self._limits.lock_ms else 0.0
        window.lag = lag

    # --- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, windows: Iterable[int] | None = None) -> Iterator[dict[str, Any]]:
        """One row for each window in which something happened, in order; or for some of them."""
        suspects = self._suspects()
        for start in sorted(self._windows if windows is None else self._windows.keys() & set(windows)):
            yield {"window_start": start, **self._row(self._windows[start], suspects.get(start, []))}

    def touched(self) -> set[int]:
        """The windows that may have changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def windows(self) -> Iterable[int]:
        return self._windows.keys()

    def forget(self, before_ms: int) -> None:
        """Forget windows that ended before this time and can not change any more: those of records that are available
        may, when it is known what becomes of them."""
        waiting = {self._start_of(each) for each in self._written.values() if each.state == AVAILABLE}
        self._windows = {
            start: window
            for start, window in self._windows.items()
            if start + self._window_ms > before_ms or start in waiting
        }
        self._touched &= self._windows.keys()

    def _row(self, window: _Window, suspects: list[int]) -> dict[str, Any]:
        return {
            "topic": window.topic,
            "source": "records" if window.is_from_records else "samples",
            "delivered": window.delivered,
            "redelivered": window.redelivered,
            "accepted": window.accepted,
            "released": window.released,
            "rejected_or_archived": window.archived,
            "lock_expiries_est": window.expiries if window.is_from_records else None,
            "max_delivery_count": window.max_count,
            **{f"count_{number}": window.by_count[number - 1] for number in range(1, COUNTS)},
            "count_5plus": window.by_count[-1],
            "poison": sorted({*window.poison, *suspects})[:POISON_MAX],
            "start_offset": window.start,
            "start_moved": window.start_moved,
            "stalled_s": window.stalled_s,
            "lag": window.lag,
        }

    def _suspects(self) -> dict[int, list[int]]:
        """Window -> the offsets that were last written in it, and still wait after many deliveries."""
        found: dict[int, list[int]] = {}
        for offset, written in self._written.items():
            if written.state == AVAILABLE and written.deliveries >= self._limits.suspect_count:
                found.setdefault(self._start_of(written), []).append(offset)
        return found

    def _start_of(self, written: _Written) -> int:
        return written.ts // self._window_ms * self._window_ms

    def _window(self, ts: int) -> _Window:
        start = ts // self._window_ms * self._window_ms
        self._touched.add(start)
        found = self._windows.get(start)
        if found is None:
            found = self._windows[start] = _Window(start=self._start)
        found.topic, found.is_from_records = self.topic, self.is_from_records
        return found

    # --- what was written ---------------------------------------------------------------------------------------------

    def _take_batch(self, ts: int, batch: Batch, window: _Window | None) -> bool:
        """Notes the states of a batch; returns whether records of it were finished."""
        last = min(batch.last, batch.first + OFFSETS_MAX)
        changed = [offset for offset in range(batch.first, last + 1) if self._differs(offset, batch)]
        ended = [offset for offset in changed if self._is_delivery(offset, batch)]
        if window is not None and batch.deliveries > 0:
            self._tally(ts, batch, changed, ended, window)
        for offset in changed:
            if offset in self._written:
                self._touched.add(self._start_of(self._written[offset]))
            if len(self._written) < OFFSETS_MAX or offset in self._written:
                self._written[offset] = _Written(batch.state, batch.deliveries, ts)
        return bool(changed) and batch.state != AVAILABLE

    def _differs(self, offset: int, batch: Batch) -> bool:
        known = self._written.get(offset)
        return known is None or (known.state, known.deliveries) != (batch.state, batch.deliveries)

    def _is_delivery(self, offset: int, batch: Batch) -> bool:
        """Whether the record was delivered again: every delivery increments the count."""
        known = self._written.get(offset)
        return known is None or batch.deliveries > known.deliveries

    def _tally(self, ts: int, batch: Batch, changed: list[int], ended: list[int], window: _Window) -> None:
        count = len(ended)
        window.delivered += count
        window.redelivered += count if batch.deliveries > 1 else 0
        window.by_count[min(batch.deliveries, COUNTS) - 1] += count
        window.max_count = max(window.max_count, batch.deliveries if count else 0)
        if batch.state == AVAILABLE:
            window.released += count
            if batch.first == batch.last and count:
                self._note_expiry(ts, batch.first)
        elif batch.state == ACKNOWLEDGED:
            window.accepted += count
        elif batch.state == ARCHIVED:
            window.archived += count
            if batch.deliveries >= self._limits.delivery_count:
                window.poison += changed[:POISON_MAX]

    def _note_expiry(self, ts: int, offset: int) -> None:
        """A record that becomes available exactly one lock duration after the last time was not released: its lock
        expired, both times."""
        known = self._written.get(offset)
        lock_ms = self._limits.lock_ms
        tolerance_ms = max(lock_ms * _TOLERANCE, _TOLERANCE_MS)
        if known is None or known.state != AVAILABLE or abs(ts - known.ts - lock_ms) > tolerance_ms:
            return
        if self._expired_at.get(offset) != known.ts:
            self._window(known.ts).expiries += 1
        self._window(ts).expiries += 1
        self._expired_at[offset] = ts

    def _moves(self, start: int | None, window: _Window) -> bool:
        if start is None or start < 0 or start == self._start:
            return False
        if self._start is not None:
            window.start_moved += start - self._start
        self._start = window.start = start
        self._forget_before(start)
        return True

    def _forget_before(self, start: int) -> None:
        self._touched.update(self._start_of(each) for offset, each in self._written.items() if offset < start)
        self._written = {offset: each for offset, each in self._written.items() if offset >= start}
        self._expired_at = {offset: each for offset, each in self._expired_at.items() if offset >= start}
