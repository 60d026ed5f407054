"""Rejects, expired locks and lock times of a share group, which ottla brokers count since they started.

Plain Python, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ottla.spark.jobs.ordered_fold import Order, SampleFold, TimedSample

__all__ = ["WHOLE_GROUP", "ShareCounters"]

WHOLE_GROUP: Final = {"topic_id": "", "partition": -1}
"""The columns of rows that are not about one partition."""


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


class ShareCounters(SampleFold[_Sums]):
    """A `WindowFold`: its rows are those of share_delivery about a whole group."""

    def __init__(self, window_ms: int) -> None:
        super().__init__(window_ms)
        self._before: dict[int | None, _Counters] = {}

    def take(self, order: Order, row: TimedSample) -> None:
        self.last = order
        try:
            now = _read(row.body)
        except msgspec.MsgspecError:
            return
        before = self._before.get(now.node)
        self._before[now.node] = now
        sums = self._window(row.ts, _Sums)
        # A counter that decreased belongs to a restarted broker; its whole value was counted since.
        is_new = before is not None and now.delivered < before.delivered
        known = _Counters(lock_ms=0) if is_new else before or now
        sums.rejected += max(0, now.rejected - known.rejected)
        sums.lock_expiries += max(0, now.lock_expiries - known.lock_expiries)
        if now.lock_ms is not None and known.lock_ms is not None:
            sums.lock_ms = (sums.lock_ms or 0) + max(0, now.lock_ms - known.lock_ms)

    def rows(self, *, is_all: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {(start,): self._row(start, sums) for start, sums in self._wanted(is_all=is_all)}

    def _row(self, start: int, sums: _Sums) -> dict[str, Any]:
        counts = {"rejected": sums.rejected, "lock_expiries": sums.lock_expiries, "time_in_lock_ms": sums.lock_ms}
        return {"window_start": start, **WHOLE_GROUP, **counts, "source": "samples"}

    def keys(self) -> Iterable[tuple[Any, ...]]:
        return [(start,) for start in self._windows]
