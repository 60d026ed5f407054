"""Folds a history step by step, though some of its rows come late.

A fold takes rows in order. Rows that are older than the watermark never come again: the state after them is the *base*.
The newer ones are kept. The *tip* is the state after all rows so far, so rows that come in order cost what they are;
only when a row comes out of order, the newer rows are folded again from the base.

Plain Python, without Spark. States are pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from zlib import crc32

__all__ = ["Advanced", "OrderedFold", "SampleFold", "TimedSample", "WindowFold", "advance"]

RowT = TypeVar("RowT", bound=Hashable)
Order = tuple[Any, ...]
"""The place of a row in the order; its time is first."""
Key = tuple[Any, ...]
"""The key of a row of a table."""
Cells = dict[str, Any]


class WindowFold(Protocol[RowT]):
    """Takes rows in order, and makes rows of a table, each with a key of its own."""

    last: Order
    """The place of the last row; empty before the first."""

    def arranged(self, rows: Iterable[RowT]) -> list[tuple[Order, RowT]]:
        """Rows with their places, in order, if they come after those that were taken."""

    def take(self, order: Order, row: RowT) -> None: ...

    def rows(self, *, is_all: bool) -> dict[Key, Cells]:
        """The rows that may have changed since the fold was loaded, or all that may still change, by their keys."""

    def keys(self) -> Iterable[Key]:
        """The keys of all rows that may still change."""

    def forget(self, before_ms: int) -> None:
        """No row before this time comes any more."""


class TimedSample(NamedTuple):
    """A sample by its time; samples of one time have their order from the observer."""

    ts: int
    seq: int
    body: bytes


WindowT = TypeVar("WindowT")


class SampleFold(Generic[WindowT]):
    """What folds over samples in windows have in common."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self.last: Order = ()
        self._windows: dict[int, WindowT] = {}
        """By their starts: those that may still change."""
        self._touched: set[int] = set()

    def arranged(self, rows: Iterable[TimedSample]) -> list[tuple[Order, TimedSample]]:
        return [((each.ts, each.seq), each) for each in sorted(rows)]

    def forget(self, before_ms: int) -> None:
        self._windows = {
            start: window for start, window in self._windows.items() if start + self._window_ms > before_ms
        }

    def _window(self, ts: int, make: Callable[[], WindowT]) -> WindowT:
        start = ts // self._window_ms * self._window_ms
        self._touched.add(start)
        return self._windows.setdefault(start, make())

    def _wanted(self, *, is_all: bool) -> list[tuple[int, WindowT]]:
        """The windows that have changed since the last time, or all."""
        touched, self._touched = self._touched, set()
        return [(start, window) for start, window in self._windows.items() if is_all or start in touched]


FoldT = TypeVar("FoldT", bound=WindowFold[Any])


class _State(NamedTuple):
    base: bytes
    pending: list[Any]
    tip: bytes
    told: dict[Key, int]
    """Digests of the rows that may still change."""


class Advanced(NamedTuple):
    kept: bytes
    changed: dict[Key, Cells]
    deleted: list[Key]


def advance(
    kept: bytes | None, rows: Iterable[RowT], watermark_ms: int, make: Callable[[], WindowFold[RowT]]
) -> Advanced:
    """The next state, and the rows that are new, have changed, or are there no more."""
    ordered = OrderedFold(kept, make)
    changed, deleted = ordered.take(rows)
    ordered.forget(watermark_ms)
    return Advanced(ordered.kept(), changed, deleted)


class OrderedFold(Generic[FoldT]):
    """A fold with its base. `tip` is the fold after all rows."""

    def __init__(self, kept: bytes | None, make: Callable[[], FoldT]) -> None:
        if kept is None:
            fresh = pickle.dumps(make())
            self._state = _State(fresh, [], fresh, {})
        else:
            self._state = pickle.loads(kept)
        self.tip: FoldT = pickle.loads(self._state.tip)

    def take(self, rows: Iterable[Any], withdrawn: Iterable[Any] = ()) -> tuple[dict[Key, Cells], list[Key]]:
        """The rows that have changed, and the keys of those that are there no more. `withdrawn` rows were taken before,
        and turned out to be wrong."""
        base, pending, _, told = self._state
        known = set(pending)
        fresh = [row for row in dict.fromkeys(rows) if row not in known]
        wrong = known & set(withdrawn)
        pending = [row for row in pending if row not in wrong]
        arranged = self.tip.arranged(fresh)
        is_in_order = not wrong and (not arranged or arranged[0][0] > self.tip.last)
        if not is_in_order:
            self.tip = pickle.loads(base)
            arranged = self.tip.arranged([*pending, *fresh])
        for order, row in arranged:
            self.tip.take(order, row)
        now = self.tip.rows(is_all=not is_in_order)
        digests = {key: crc32(repr(sorted(cells.items())).encode()) for key, cells in now.items()}
        changed = {key: cells for key, cells in now.items() if told.get(key) != digests[key]}
        deleted = [] if is_in_order else [key for key in told if key not in now]
        told = {**told, **digests} if is_in_order else digests
        self._state = _State(base, [*pending, *fresh], b"", told)
        return changed, deleted

    def forget(self, watermark_ms: int) -> None:
        """Move the base on to the watermark."""
        base, pending, _, told = self._state
        fold: FoldT = pickle.loads(base)
        past: list[tuple[Order, Any]] = []
        newer: list[tuple[Order, Any]] = []
        for order, row in fold.arranged(pending):
            (past if order[0] < watermark_ms else newer).append((order, row))
        if not past:
            return
        for order, row in past:
            fold.take(order, row)
        fold.forget(watermark_ms)
        self.tip.forget(watermark_ms)
        still = set(self.tip.keys())
        told = {key: digest for key, digest in told.items() if key in still}
        self._state = _State(pickle.dumps(fold), [row for _, row in newer], b"", told)

    def kept(self) -> bytes:
        """The state with which another process goes on."""
        return pickle.dumps(self._state._replace(tip=pickle.dumps(self.tip)))
