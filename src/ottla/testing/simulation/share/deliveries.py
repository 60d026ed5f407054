"""What has become of the records of a share partition, as somebody sees it who reads all answers of the brokers.

Judged by answers that leave a broker, whether or not they arrive, and by what stands in `__share_group_state`:

===============  =======================================================================================================
done once        a record whose acceptance (or rejection) was answered without an error is never delivered again
one holder       within one life of the share partition nobody is given what somebody else holds. A life ends with a
                 restart and a change of leaders; holding ends with an acknowledgement, a session or a lock
counted          the delivery count is greater than the one that was last written, and in one life it grows by one
ends             in the end every record was accepted, rejected or delivered as often as is allowed
===============  =======================================================================================================

An acknowledgement that got no answer, or an error after which it may have been written, counts either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.share.partition.events import Acknowledgement, AcquiredRange
from ottla.share.partition.states import AcknowledgeType
from ottla.testing.simulation.trace import Violation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.share_state import ShareSnapshotKey

__all__ = ["Asked", "Deliveries"]

_FINAL: Final = frozenset((AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT))
_NOT_WRITTEN: Final = frozenset(
    (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
)
"""Errors of acknowledgements that never came to a write."""


class Asked(NamedTuple):
    """Acknowledgements of one partition in a request, offset by offset, without renewals."""

    number: int
    member_id: str
    types: dict[int, int]

    @classmethod
    def of(cls, number: int, member_id: str, batches: Iterable[Acknowledgement]) -> Asked:
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


class Deliveries:
    """Of one share partition."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._done: set[int] = set()
        self._unclear: dict[int, set[int]] = {}
        """Offset -> the acknowledgements that may have settled it."""
        self._last: dict[int, _Delivery] = {}
        self._counts: dict[int, int] = {}
        """Offset -> how often it was delivered at least."""
        self._holders: dict[int, _Holder] = {}
        self._written: dict[int, int] = {}
        """Offset -> the delivery count that the state has of it."""
        self._open: set[int] = set()
        """Acknowledgements without an answer, by the number of their request."""
        self._epoch_read = 0
        self._epoch_judged = 0
        """State epochs: of the last snapshot, and the highest of all."""
        self.start: int | None = None
        """Where the group began, as soon as that is written."""
        self._first: int | None = None
        """What was delivered first, if that was before."""
        self.slack = 0
        """How many fetches were given up: what they had acquired has cost a delivery that nobody saw."""

    # --- what the state says ------------------------------------------------------------------------------------------

    def begin_state(self, records: Iterable[KeyedRecord]) -> None:
        """The log is this, whatever was appended before."""
        self._written.clear()
        self._epoch_read = 0
        known = self.start
        self.start = None
        for record in records:
            self.take_state(record)
        self._keep_start(known)

    def _keep_start(self, known: int | None) -> None:
        """The log may have been pruned since; but what was never written is not known."""
        if self.start is not None and known is not None:
            self.start = min(known, self.start)

    def take_state(self, record: KeyedRecord) -> None:
        value = record.value
        if value is None:
            return
        if isinstance(record.key, ShareSnapshotKey):
            self._written.clear()
            self._begin_epoch(value.state_epoch)
        if self.start is None and value.start_offset >= 0:
            self.start = value.start_offset
        for batch in value.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self._written[offset] = max(batch.delivery_count, self._written.get(offset, 0))

    def _begin_epoch(self, state_epoch: int) -> None:
        """Somebody has set the start offset: everything behind it comes again, whatever was said of it before."""
        if state_epoch > self._epoch_read:
            self._epoch_read = state_epoch
            self.start = None
        if state_epoch <= self._epoch_judged:
            return
        self._epoch_judged = state_epoch
        self._open.clear()
        self._done.clear()
        self._unclear.clear()
        self._last.clear()
        self._counts.clear()
        self._written.clear()
        self._holders.clear()
        self._first = None

    # --- what the brokers are asked and answer ------------------------------------------------------------------------

    def asked(self, asked: Asked) -> None:
        self._open.add(asked.number)
        for offset, kind in asked.types.items():
            holder = self._holders.get(offset)
            if holder is not None and holder.member_id == asked.member_id:
                del self._holders[offset]
            if kind in _FINAL:
                self._unclear.setdefault(offset, set()).add(asked.number)

    def answered(self, asked: Asked, error: ErrorCode) -> None:
        if asked.number not in self._open:
            return
        self._open.remove(asked.number)
        for offset, kind in asked.types.items():
            if kind not in _FINAL:
                continue
            if error is ErrorCode.NONE:
                self._done.add(offset)
            elif error in _NOT_WRITTEN:
                self._unclear[offset].discard(asked.number)

    def delivered(self, member_id: str, ranges: Sequence[AcquiredRange], life: Any, since_ms: int, now_ms: int) -> None:  # noqa: ANN401
        """An answer gives records to a member, whose locks hold at least until `since_ms`. Raises Violation.

        `life` is None if the share partition was dropped while the answer was being made.
        """
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                self._deliver(offset, count, member_id, life, since_ms, now_ms)

    def _deliver(self, offset: int, count: int, member_id: str, life: Any, until_ms: int, now_ms: int) -> None:  # noqa: ANN401
        if offset in self._done:
            raise Violation("done once", f"{self._name} gives {offset} to {member_id}: it is done")
        self._counts[offset] = max(count, self._counts.get(offset, 0))
        if life is None:
            return
        holder = self._holders.get(offset)
        if holder is not None and holder.life is life and holder.until_ms > now_ms:
            detail = f"{self._name} gives {offset} to {member_id}: {holder.member_id} has it until {holder.until_ms}"
            raise Violation("one holder", detail)
        if self.start is None and self._first is None:
            self._first = offset
        self._check_count(offset, count, life)
        self._last[offset] = _Delivery(life, count, self.slack)
        self._holders[offset] = _Holder(life, member_id, until_ms)

    def _check_count(self, offset: int, count: int, life: Any) -> None:  # noqa: ANN401
        last = self._last.get(offset)
        if last is not None and last.life is life:
            wanted = range(last.times + 1, last.times + 2 + self.slack - last.slack)
        else:
            wanted = range(self._written.get(offset, 0) + 1, 1_000)
        if count not in wanted:
            detail = f"{self._name} delivers {offset} for the {count}th time, where {wanted.start} is next"
            raise Violation("counted", detail)

    def released(self, member_id: str) -> None:
        """A session is over."""
        self._holders = {offset: each for offset, each in self._holders.items() if each.member_id != member_id}

    # --- the end ------------------------------------------------------------------------------------------------------

    def unended(self, log_start_offset: int, end_offset: int, limit: int) -> list[int]:
        """The records that nothing has become of."""
        starts = [each for each in (self.start, self._first) if each is not None]
        return [
            offset
            for offset in range(max(min(starts, default=end_offset), log_start_offset), end_offset)
            if offset not in self._done
            and not self._unclear.get(offset)
            and self._counts.get(offset, 0) + self.slack < limit
        ]
