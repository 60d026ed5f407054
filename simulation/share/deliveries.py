"""The history of the records of a share partition, from all responses of the brokers, and its invariants.

It is built from responses that leave a broker, whether or not they arrive, and from `__share_group_state`:

===============  =======================================================================================================
done once        a record whose acceptance (or rejection) was answered without an error is never delivered again
one holder       within one life of the share partition, no record is delivered while another member holds it. A life
                 ends with a restart and a change of leaders; holding ends with an acknowledgement, a session or a lock
counted          the delivery count is greater than the one that was last written, and in one life it grows by one
ends             at the end every record was accepted, rejected or delivered as often as the limit allows
===============  =======================================================================================================

An acknowledgement without a response, or with an error after which it may have been written, counts either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.core.share.partition.events import Acknowledgement, AcquiredRange
from ottla.core.share.partition.states import AcknowledgeType
from ottla.testing.trace import Violation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.share_state import ShareSnapshotKey

__all__ = ["Deliveries", "PendingAcknowledgements"]

_FINAL: Final = frozenset((AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT))
_NOT_WRITTEN: Final = frozenset(
    (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
)
"""Errors of acknowledgements that were not written."""


class PendingAcknowledgements(NamedTuple):
    """Acknowledgements of one partition in a request, offset by offset, without renewals."""

    number: int
    member_id: str
    types: dict[int, int]

    @classmethod
    def of(cls, number: int, member_id: str, batches: Iterable[Acknowledgement]) -> PendingAcknowledgements:
        return cls(number, member_id, {offset: kind for batch in batches for offset, kind in _spread(batch)})


def _spread(batch: Acknowledgement) -> Iterable[tuple[int, int]]:
    for index, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
        kind = batch.types[index if len(batch.types) > 1 else 0]
        if kind != AcknowledgeType.RENEW:
            yield offset, kind


class _Delivery(NamedTuple):
    life: Any
    times: int
    slack: int


class _Holder(NamedTuple):
    life: Any
    member_id: str
    until_ms: int


class _StateHistory:
    """The history of records since the start offset was last set: all records from there on are delivered again, even
    acknowledged ones."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.unclear: dict[int, set[int]] = {}
        """Offset -> the acknowledgements that may have finished it."""
        self.last: dict[int, _Delivery] = {}
        self.counts: dict[int, int] = {}
        """Offset -> the least number of its deliveries."""
        self.holders: dict[int, _Holder] = {}
        self.written: dict[int, int] = {}
        """Offset -> its delivery count in the state."""
        self.open: set[int] = set()
        """Acknowledgements without a response, by the number of their request."""
        self.start: int | None = None
        """The first start offset, once it is written."""
        self.first: int | None = None
        """The first delivered offset, if it was delivered before that."""


class Deliveries:
    """The deliveries of one share partition."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._chapters = {0: _StateHistory()}
        """By state epoch. The last one counts, but a kill may undo it."""
        self._now = self._chapters[0]
        self.slack = 0
        """How many fetches were dropped: the records that they acquired count as delivered without a response."""

    # --- what the state says ------------------------------------------------------------------------------------------

    def begin_state(self, records: Iterable[KeyedRecord]) -> None:
        """Start over with the records of a log."""
        known = {epoch: chapter.start for epoch, chapter in self._chapters.items()}
        self._now = self._chapters[0]
        for chapter in self._chapters.values():
            chapter.start = None
        for record in records:
            self.take_state(record)
        for epoch, chapter in self._chapters.items():
            before = known.get(epoch)
            if chapter.start is not None and before is not None:
                chapter.start = min(before, chapter.start)  # the log may have been pruned since

    def take_state(self, record: KeyedRecord) -> None:
        value = record.value
        if value is None:
            return
        if isinstance(record.key, ShareSnapshotKey):
            self._now = self._chapters.setdefault(value.state_epoch, _StateHistory())
            self._now.written.clear()
        chapter = self._now
        if chapter.start is None and value.start_offset >= 0:
            chapter.start = value.start_offset
        for batch in value.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                chapter.written[offset] = max(batch.delivery_count, chapter.written.get(offset, 0))

    # --- what the brokers are asked and answer ------------------------------------------------------------------------

    def asked(self, asked: PendingAcknowledgements) -> None:
        chapter = self._now
        chapter.open.add(asked.number)
        for offset, kind in asked.types.items():
            holder = chapter.holders.get(offset)
            if holder is not None and holder.member_id == asked.member_id:
                del chapter.holders[offset]
            if kind in _FINAL:
                chapter.unclear.setdefault(offset, set()).add(asked.number)

    def answered(self, asked: PendingAcknowledgements, error: ErrorCode) -> None:
        chapter = self._now
        if asked.number not in chapter.open:
            return
        chapter.open.remove(asked.number)
        for offset, kind in asked.types.items():
            if kind not in _FINAL:
                continue
            if error is ErrorCode.NONE:
                chapter.done.add(offset)
            elif error in _NOT_WRITTEN:
                chapter.unclear[offset].discard(asked.number)

    def delivered(self, member_id: str, ranges: Sequence[AcquiredRange], life: Any, until_ms: int, now_ms: int) -> None:  # noqa: ANN401
        """A response delivers records to a member, whose locks hold at least until `until_ms`. Raises Violation.

        `life` is None if the share partition was dropped while the response was being made.
        """
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                self._deliver(offset, count, _Holder(life, member_id, until_ms), now_ms)

    def _deliver(self, offset: int, count: int, taker: _Holder, now_ms: int) -> None:
        chapter = self._now
        if offset in chapter.done:
            raise Violation("done once", f"{self._name} gives {offset} to {taker.member_id}: it is done")
        chapter.counts[offset] = max(count, chapter.counts.get(offset, 0))
        if taker.life is None:
            return
        holder = chapter.holders.get(offset)
        if holder is not None and holder.life is taker.life and holder.until_ms > now_ms:
            told = f"{self._name} gives {offset} to {taker.member_id}"
            raise Violation("one holder", f"{told}: {holder.member_id} has it until {holder.until_ms}")
        if chapter.start is None and chapter.first is None:
            chapter.first = offset
        self._check_count(offset, count, taker.life)
        chapter.last[offset] = _Delivery(taker.life, count, self.slack)
        chapter.holders[offset] = taker

    def _check_count(self, offset: int, count: int, life: Any) -> None:  # noqa: ANN401
        last = self._now.last.get(offset)
        if last is not None and last.life is life:
            wanted = range(last.times + 1, last.times + 2 + self.slack - last.slack)
        else:
            wanted = range(self._now.written.get(offset, 0) + 1, 1_000)
        if count not in wanted:
            detail = f"{self._name} delivers {offset} for the {count}th time, where {wanted.start} is next"
            raise Violation("counted", detail)

    def released(self, member_id: str) -> None:
        """A session has ended."""
        holders = self._now.holders
        for offset in [offset for offset, holder in holders.items() if holder.member_id == member_id]:
            del holders[offset]

    # --- the end ------------------------------------------------------------------------------------------------------

    def unended(self, log_start_offset: int, end_offset: int, limit: int) -> list[int]:
        """The records that were neither accepted, rejected nor delivered as often as allowed."""
        chapter = self._now
        start = min((each for each in (chapter.start, chapter.first) if each is not None), default=end_offset)
        return [
            offset
            for offset in range(max(start, log_start_offset), end_offset)
            if offset not in chapter.done
            and not chapter.unclear.get(offset)
            and chapter.counts.get(offset, 0) + self.slack < limit
        ]
