"""The history of one share partition: records of its state, samples of these records, and samples of its offsets.

Plain Python, without Spark. Records are ordered by offset, not by the clocks of coordinators; samples of offsets find
their place among them by time. Brokers delete records that newer snapshots replace, and an observer may have sampled
them before: each record counts once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ottla.health.facts import ShareOffsets, ShareState
from ottla.spark.jobs.share_fold import Batch, ShareFold, ShareLimits, StateRecord
from ottla.spark.jobs.share_state import SNAPSHOT, read_state, start_of
from ottla.spark.notes import warn_seldom
from ottla.wire import WireError

__all__ = ["OFFSETS", "SAMPLED_STATE", "SharePartition", "ShareRow"]

SAMPLED_STATE: Final = "sampled_state"
OFFSETS: Final = "offsets"
_read_sampled: Final = msgspec.json.Decoder(ShareState).decode
_read_offsets: Final = msgspec.json.Decoder(ShareOffsets).decode


class ShareRow(NamedTuple):
    what: str
    """The type of a record, SAMPLED_STATE or OFFSETS."""
    ts: int
    """When the record was written, or the offsets were sampled."""
    offset: int | None
    """Of the record; for OFFSETS the number of the sample."""
    topic: str | None
    data: bytes | None
    """The value of the record, or the body of the sample."""


Order = tuple[int, int, bool, str]


class SharePartition:
    """A `WindowFold`: its rows are those of share_delivery, by the start of their window."""

    def __init__(self, window_ms: int, limits: ShareLimits) -> None:
        self._fold = ShareFold(window_ms, limits)
        self.last: tuple[Any, ...] = ()
        self._newest_ms = 0
        """The newest time of records: those with higher offsets come later, whatever time they have."""
        self._offsets: dict[int, tuple[int, bool]] = {}
        """The records that were taken, with the time of their place, and whether only a sample told them."""
        self._floor = -1
        """Records up to this offset were taken so long ago that their offsets are forgotten."""

    def arranged(self, rows: Iterable[ShareRow]) -> list[tuple[Order, ShareRow]]:
        states: list[ShareRow] = []
        offsets: list[ShareRow] = []
        for row in rows:
            (offsets if row.what == OFFSETS else states).append(row)
        found = [((each.ts, each.offset or 0, True, each.what), each) for each in offsets]
        newest_ms = self._newest_ms
        # Records come before samples of them, which are then duplicates.
        before: int | None = None
        for each in sorted(states, key=lambda row: (_number(row.offset), row.what == SAMPLED_STATE)):
            if each.offset is not None and (each.offset == before or self._is_known(each, each.offset)):
                continue
            before = each.offset
            newest_ms = max(newest_ms, each.ts)
            found.append(((newest_ms, _number(each.offset), each.what == SAMPLED_STATE, each.what), each))
        return sorted(found, key=lambda each: each[0])

    def _is_known(self, row: ShareRow, offset: int) -> bool:
        """Whether a record was taken. A record that only a sample told is better than the sample."""
        known = self._offsets.get(offset)
        return offset <= self._floor or (known is not None and (row.what == SAMPLED_STATE or not known[1]))

    def take(self, order: Order, row: ShareRow) -> None:
        self.last = order
        if row.what != OFFSETS:
            self._newest_ms = order[0]
            if row.offset is not None:
                self._offsets[row.offset] = order[0], row.what == SAMPLED_STATE
        self.take_next(row)

    def take_next(self, row: ShareRow) -> None:
        """A row of a history that is in order and has no duplicates."""
        fold = self._fold
        fold.topic = row.topic or fold.topic
        try:
            if row.what == OFFSETS:
                sample = _read_offsets(row.data or b"")
                fold.take_offsets(row.ts, sample.start, sample.lag)
            else:
                self._take_state(row)
        except msgspec.MsgspecError as error:  # any client may write anything to the topic of samples
            warn_seldom(f"the sample of {row.what} at {row.ts} cannot be read: {error}")

    def _take_state(self, row: ShareRow) -> None:
        if row.what == SAMPLED_STATE:
            sample = _read_sampled(row.data or b"")
            batches = tuple(Batch(each.first, each.last, each.state, each.count) for each in sample.batches)
            self._fold.take_record(row.ts, StateRecord(sample.record == SNAPSHOT, sample.start, batches))
            return
        self._fold.is_from_records = True
        if row.data is None:
            self._fold.deleted()
            return
        try:
            self._fold.take_record(row.ts, _record(row.what, row.data))
        except WireError as error:
            warn_seldom(f"{row.what} at offset {row.offset} of __share_group_state cannot be read: {error}")

    def rows(self, *, is_all: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
        windows = self._fold.touched()
        return {(row["window_start"],): row for row in self._fold.rows(None if is_all else windows)}

    def keys(self) -> Iterable[tuple[Any, ...]]:
        return [(start,) for start in self._fold.windows()]

    def forget(self, before_ms: int) -> None:
        self._fold.forget(before_ms)
        old = [offset for offset, (at_ms, _) in self._offsets.items() if at_ms < before_ms]
        self._floor = max([self._floor, *old])
        for offset in old:
            del self._offsets[offset]


def _number(offset: int | None) -> int:
    return -1 if offset is None else offset


def _record(record_type: str, value: bytes) -> StateRecord:
    state = read_state(record_type, value)
    batches = tuple(
        Batch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in state.state_batches
    )
    # An update has no state epoch: it belongs to the snapshot before it.
    return StateRecord(record_type == SNAPSHOT, start_of(state), batches, getattr(state, "state_epoch", None))
