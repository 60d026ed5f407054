"""Rejects, expired locks and lock times of a share group, which ottla brokers count since they started.

Plain Python, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

__all__ = ["WHOLE_GROUP", "CounterRow", "ShareCounters"]

WHOLE_GROUP: Final = {"topic_id": "", "partition": -1}
"""The columns of rows that are not about one partition."""


class CounterRow(NamedTuple):
    ts: int
    seq: int
    body: bytes


class _Counters(msgspec.Struct):
    """The body of a sample. Zeros are not written."""

    node: int | None = None
    delivered: int = 0
    rejected: int = 0
    lock_expiries: int = 0
    lock_ms: int | None = None


class _Sums(msgspec.Struct):
    rejected: int = 0
    lock_expiries: int = 0
    lock_ms: int | None = None


_read: Final = msgspec.json.Decoder(_Counters).decode


class ShareCounters:
    """A `WindowFold`: its rows are those of share_delivery about a whole group."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self.last: tuple[int, ...] = ()
        self._before: dict[int | None, _Counters] = {}
        self._windows: dict[int, _Sums] = {}
        self._touched: set[int] = set()

    def arranged(self, rows: Iterable[CounterRow]) -> list[tuple[tuple[int, ...], CounterRow]]:
        return [((each.ts, each.seq), each) for each in sorted(rows)]

    def take(self, order: tuple[int, ...], row: CounterRow) -> None:
        self.last = order
        try:
            now = _read(row.body)
        except msgspec.MsgspecError:
            return
        before = self._before.get(now.node)
        self._before[now.node] = now
        start = row.ts // self._window_ms * self._window_ms
        self._touched.add(start)
        sums = self._windows.setdefault(start, _Sums())
        # A counter that decreased belongs to a restarted broker; its whole value was counted since.
        is_new = before is not None and now.delivered < before.delivered
        known = _Counters(lock_ms=0) if is_new else before or now
        sums.rejected += max(0, now.rejected - known.rejected)
        sums.lock_expiries += max(0, now.lock_expiries - known.lock_expiries)
        if now.lock_ms is not None and known.lock_ms is not None:
            sums.lock_ms = (sums.lock_ms or 0) + max(0, now.lock_ms - known.lock_ms)

    def rows(self, *, is_all: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
        touched, self._touched = self._touched, set()
        windows = self._windows if is_all else self._windows.keys() & touched
        return {(start,): self._row(start, self._windows[start]) for start in windows}

    def _row(self, start: int, sums: _Sums) -> dict[str, Any]:
        counts = {"rejected": sums.rejected, "lock_expiries": sums.lock_expiries, "time_in_lock_ms": sums.lock_ms}
        return {"window_start": start, **WHOLE_GROUP, **counts, "source": "samples"}

    def keys(self) -> Iterable[tuple[Any, ...]]:
        return [(start,) for start in self._windows]

    def forget(self, before_ms: int) -> None:
        self._windows = {start: sums for start, sums in self._windows.items() if start + self._window_ms > before_ms}
