"""One partition's files as a log: its start and end, offsets by time, and transactions.

The end is the offset after the last whole record batch, or the last high watermark that the broker wrote. That is exact
after a clean stop, but old for a running or killed broker, so the end of the log is the default.

Committed readers do not see transactions that are open at the end: the last stable offset is the first offset of the
oldest of them. The newest producer snapshot and the log after it tell which are open. Aborted ones are listed in the
`.txnindex` of the segment with their marker, which may be later than the segment of their records. If indexes are
missing, the log itself is searched for markers.

Whoever looks at a growing log again and again keeps the `CheckedEnd` of each view and gives it to the next one, which
then reads only what was appended meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from ottla.log.names import SNAPSHOT_SUFFIX, file_name
from ottla.log.producer_snapshot import SnapshotError, parse_snapshot
from ottla.log.scan import read_batch
from ottla.log.txn_index import AbortedTxn
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.directory import PartitionFiles, read_file
from ottla.spark.log.plan import UpTo
from ottla.spark.log.segments import NO_BATCH, LogEnd, Segment
from ottla.wire.batch import HEADER_BYTES, BatchView, ControlRecordType, read_control_type
from ottla.wire.fault import WireError

__all__ = ["CheckedEnd", "PartitionView"]

ENDS_KEPT: Final = 8
"""A committed reader goes on at the last stable offset, which an open transaction holds back for some views."""


class _Transactions(NamedTuple):
    open: dict[int, int]
    """Producer -> first offset of its open transaction."""
    aborted: list[AbortedTxn]


class CheckedEnd(NamedTuple):
    """How far a log was checked, and what was open there."""

    base_offset: int
    """Of the last segment."""
    ends: tuple[LogEnd, ...]
    """The last ends of that segment, the newest last."""
    last_batch: bytes
    """The header of the batch before the newest end. As long as it is there, so is all that was before it: brokers cut
    logs, and append other batches, but change nothing in place."""
    end_offset: int
    transactions: _Transactions | None
    """Before `end_offset`; None if nobody asked."""


class PartitionView:
    """A partition as it was listed. `checked` is what an earlier view of it has found."""

    def __init__(self, files: PartitionFiles, up_to: UpTo | None = None, checked: CheckedEnd | None = None) -> None:
        self.files = files
        self._asked_up_to = up_to
        self._told_checked = checked

    @property
    def start_offset(self) -> int:
        return self.files.log_start_offset

    def segment(self, index: int) -> Segment:
        files, checked = self.files.segments[index], self._checked
        known_ends = checked.ends if checked is not None and checked.base_offset == files.base_offset else ()
        return Segment(self.files, files, known_ends)

    @cached_property
    def _checked(self) -> CheckedEnd | None:
        """What was checked earlier, if all of it is still there, in the last segment."""
        checked = self._told_checked
        if checked is None or not self.files.segments or self.files.segments[-1].base_offset != checked.base_offset:
            return None
        end = checked.ends[-1]
        with Segment(self.files, self.files.segments[-1]) as last:
            if last.size_bytes < end.position:
                return None
            return checked if last.file.read(len(checked.last_batch), end.last_position) == checked.last_batch else None

    def checked_end(self, *, is_committed: bool) -> CheckedEnd | None:
        """What the next view of this partition need not read again; None if there is no batch."""
        end = self.valid_end
        if end.last_position == NO_BATCH:
            return None
        known = () if self._checked is None else self._checked.ends
        transactions = self._at_end if is_committed else None
        with self.segment(-1) as last:
            size = min(HEADER_BYTES, end.position - end.last_position)
            last_batch = last.file.read(size, end.last_position)
        ends = tuple(dict.fromkeys((*known, end)))[-ENDS_KEPT:]
        return CheckedEnd(last.base_offset, ends, last_batch, self.end_offset, transactions)

    def segments(self, from_offset: int, until_offset: int) -> Iterator[int]:
        """The numbers of the segments that may hold offsets of a range."""
        bases = [each.base_offset for each in self.files.segments]
        for index, base in enumerate(bases):
            next_base = bases[index + 1] if index + 1 < len(bases) else until_offset
            if base < until_offset and next_base > from_offset:
                yield index

    # --- the end ------------------------------------------------------------------------------------------------------

    @cached_property
    def valid_end(self) -> LogEnd:
        """The end of the whole record batches; its position is one in the last segment."""
        if not self.files.segments:
            return LogEnd(0, self.start_offset)
        with self.segment(-1) as last:
            end = last.end()
        return end._replace(offset=max(end.offset, self.start_offset))

    @cached_property
    def up_to(self) -> UpTo:
        if self._asked_up_to is not None:
            return self._asked_up_to
        return "hw" if self.files.directory.is_clean and self.files.high_watermark is not None else "end"

    @cached_property
    def end_offset(self) -> int:
        """The offset after the last one to read, without regard to transactions."""
        if self.up_to == "end":
            return self.valid_end.offset
        high_watermark = self.files.high_watermark
        if high_watermark is None:
            where = f"{self.files.directory.path} has none for {self.files.topic_partition}"
            raise OttlaSparkError(f"option upTo: hw needs a high watermark, but {where}")
        return min(max(high_watermark, self.start_offset), self.valid_end.offset)

    # --- times --------------------------------------------------------------------------------------------------------

    def offset_at(self, timestamp: int) -> int | None:
        """The first offset whose record is not older than a time; None if all are older."""
        for index in self.segments(self.start_offset, self.end_offset):
            with self.segment(index) as segment:
                if self._is_indexed(index) and segment.is_older_than(timestamp):
                    continue
                found = self._first_at(segment, timestamp)
            if found is not None:
                return found if found < self.end_offset else None
        return None

    def _first_at(self, segment: Segment, timestamp: int) -> int | None:
        try:
            return segment.first_at(timestamp, self.start_offset)
        except WireError:
            # Damage: reading from the segment's beginning will find and report it.
            return max(segment.base_offset, self.start_offset)

    def _is_indexed(self, index: int) -> bool:
        """Whether the indexes of a segment were complete when the broker last flushed them."""
        if index + 1 == len(self.files.segments):
            return False
        return self.files.directory.is_clean or self.files.segments[index + 1].base_offset <= self.files.recovery_point

    # --- transactions -------------------------------------------------------------------------------------------------

    @cached_property
    def last_stable_offset(self) -> int:
        return min([*self._at_end.open.values(), self.end_offset])

    def aborted(self, from_offset: int, until_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap a range, each once."""
        found = dict.fromkeys(self._at_end.aborted)
        for index in self.segments(from_offset, self.end_offset):
            with self.segment(index) as segment:
                listed = segment.aborted()
            if listed is None:
                found |= dict.fromkeys(self._scan(from_offset).aborted)
                break
            found |= dict.fromkeys(listed)
        ranges = {(txn.producer_id, txn.first_offset, txn.last_offset): txn for txn in found}
        return [txn for txn in ranges.values() if txn.first_offset < until_offset and txn.last_offset >= from_offset]

    @cached_property
    def _at_end(self) -> _Transactions:
        checked = self._checked
        snapshot = max((each for each in self.files.producer_snapshots if each <= self.end_offset), default=0)
        if checked is None or checked.transactions is None or not snapshot <= checked.end_offset <= self.end_offset:
            return self._scan(self.end_offset)
        # The indexes have what was aborted before the snapshot.
        aborted = [each for each in checked.transactions.aborted if each.last_offset >= snapshot]
        return self._scan_after(checked.end_offset, _Transactions(dict(checked.transactions.open), aborted))

    def _scan(self, from_offset: int) -> _Transactions:
        """The transactions in the log itself, starting from the newest producer snapshot at or below an offset."""
        start, known = self._snapshot(from_offset)
        return self._scan_after(start, _Transactions(known, []))

    def _scan_after(self, start: int, state: _Transactions) -> _Transactions:
        """The transactions at the end of the log, from those at an offset."""
        for index in self.segments(start, self.end_offset):
            with self.segment(index) as segment:
                for position, header in segment.headers(segment.position_before(start)):
                    if header.base_offset >= self.end_offset:
                        break
                    if header.base_offset >= start and isinstance(header, BatchView) and header.is_transactional:
                        _note(state, segment, position, header)
        return state

    def _snapshot(self, from_offset: int) -> tuple[int, dict[int, int]]:
        for offset in reversed(self.files.producer_snapshots):
            if offset > from_offset:
                continue
            data = read_file(self.files.storage, self.files.file(file_name(offset, SNAPSHOT_SUFFIX)))
            try:
                entries = parse_snapshot(data or b"")
            except SnapshotError:
                continue
            return offset, {each.producer_id: each.txn_first_offset for each in entries if each.txn_first_offset >= 0}
        return self.start_offset, {}


def _note(state: _Transactions, segment: Segment, position: int, header: BatchView) -> None:
    """Note one batch of a transaction, or a marker."""
    if not header.is_control:
        state.open.setdefault(header.producer_id, header.base_offset)
        return
    first = state.open.pop(header.producer_id, None)
    if first is None:
        return  # a partition that was to take part in a transaction, but to which nothing was written
    try:
        (record,) = read_batch(segment.file, position, header.size_bytes).records()
        kind = read_control_type(record.key)
    except (WireError, ValueError):
        return  # reading the batch will report what is wrong with it
    if kind == ControlRecordType.ABORT:
        state.aborted.append(AbortedTxn(header.producer_id, first, header.last_offset, first))
