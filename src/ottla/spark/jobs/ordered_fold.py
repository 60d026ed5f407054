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
        self._touched &= self._windows.keys()

    def _window(self, ts: int, make: Callable[[], WindowT]) -> WindowT:
        start = ts // self._window_ms * self._window_ms
        self._touched.add(start)
        return self._windows.setdefault(start, make())

    def _wanted(self, *, is_all: bool) -> list[tuple[int, WindowT]]:
        """The windows that have changed since the last time, or all."""
        touched, self._touched = self._touched, set()
        return [(start, window) for start, window in self._windows.items() if is_all or start in touched]


FoldT = TypeVar("FoldT", bound=WindowFold[Any])


class _Kept(NamedTuple):
    """The state of a fold, for another process."""

    base: bytes
    tip: bytes
    pending: list[Any]
    told: dict[Key, int]


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
        fresh = b"" if kept is not None else pickle.dumps(make())
        state = _Kept(fresh, fresh, [], {}) if kept is None else pickle.loads(kept)
        self.tip: FoldT = pickle.loads(state.tip)
        self._base: FoldT | None = None
        self._packed_base: bytes | None = state.base
        """The base, pickled; None if it has changed since."""
        self._pending: list[Any] = state.pending
        self._told: dict[Key, int] = state.told
        """Digests of the rows that may still change."""

    def take(self, rows: Iterable[Any], withdrawn: Iterable[Any] = ()) -> tuple[dict[Key, Cells], list[Key]]:
        """The rows that have changed, and the keys of those that are there no more. `withdrawn` rows were taken before,
        and turned out to be wrong."""
        known = set(self._pending)
        fresh = [row for row in dict.fromkeys(rows) if row not in known]
        wrong = known & set(withdrawn)
        if wrong:
            self._pending = [row for row in self._pending if row not in wrong]
        arranged = self.tip.arranged(fresh)
        is_in_order = not wrong and (not arranged or arranged[0][0] > self.tip.last)
        if not is_in_order:
            self.tip = pickle.loads(self._pack_base())
            arranged = self.tip.arranged([*self._pending, *fresh])
        self._pending += fresh
        for order, row in arranged:
            self.tip.take(order, row)
        return self._changes(self.tip.rows(is_all=not is_in_order), is_all=not is_in_order)

    def _changes(self, now: dict[Key, Cells], *, is_all: bool) -> tuple[dict[Key, Cells], list[Key]]:
        """Compares rows with those that were told before."""
        digests = {key: crc32(repr(sorted(cells.items())).encode()) for key, cells in now.items()}
        changed = {key: cells for key, cells in now.items() if self._told.get(key) != digests[key]}
        if not is_all:
            self._told |= digests
            return changed, []
        deleted = [key for key in self._told if key not in now]
        self._told = digests
        return changed, deleted

    def forget(self, watermark_ms: int) -> None:
        """Move the base on to the watermark."""
        if not self._pending:
            return
        base = self._open_base()
        past: list[tuple[Order, Any]] = []
        newer: list[Any] = []
        for order, row in base.arranged(self._pending):
            if order[0] < watermark_ms:
                past.append((order, row))
            else:
                newer.append(row)
        if not past:
            return
        self._packed_base = None
        for order, row in past:
            base.take(order, row)
        base.forget(watermark_ms)
        self.tip.forget(watermark_ms)
        still = set(self.tip.keys())
        self._told = {key: digest for key, digest in self._told.items() if key in still}
        self._pending = newer

    def kept(self) -> bytes:
        """The state with which another process goes on."""
        return pickle.dumps(_Kept(self._pack_base(), pickle.dumps(self.tip), self._pending, self._told))

    def _open_base(self) -> FoldT:
        if self._base is None:
            assert self._packed_base is not None, "it is there in one form at least"
            self._base = pickle.loads(self._packed_base)
        return self._base

    def _pack_base(self) -> bytes:
        if self._packed_base is None:
            self._packed_base = pickle.dumps(self._base)
        return self._packed_base
