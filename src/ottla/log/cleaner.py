"""The log cleaner: chooses a partition, reads its dirty part, and rewrites it.

Work is a generator that pauses after each chunk, so that the loop can serve others in between; nothing of the log
changes before the last step, which puts the new segments in the place of the old ones. If the log has changed
meanwhile, by truncation or retention, the run is given up and its files are removed.

Files go through `.cleaned` and `.swap`, as `Partition.replace_segments` tells, so a crash at any time leaves either the
old segments or the new ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.log.compaction import (
    ENTRIES_MAX,
    BatchRetention,
    BatchRetentionResult,
    KeyMap,
    LastRecord,
    Transactions,
    batch_retention,
    keeps,
    last_records,
)
from ottla.log.errors import CorruptMessageError
from ottla.log.names import CLEANED_SUFFIX, TopicPartition
from ottla.log.offset_index import OFFSET_ENTRY_BYTES
from ottla.log.partition import Partition
from ottla.log.retention import newest_ms
from ottla.log.scan import CHUNK_BYTES, check_batches, read_batch
from ottla.log.segment import RELATIVE_OFFSET_MAX, IndexedBatch, Segment
from ottla.log.time_index import TIME_ENTRY_BYTES
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import AnyBatch, BatchView, filter_batch, read_header
from ottla.wire.fault import WireError

__all__ = ["Cleanable", "CompactionResult", "cleanable", "compact", "due"]

_WRITE_BYTES: Final = CHUNK_BYTES


class Cleanable(NamedTuple):
    """How much of a log a run could clean: the dirty part is [first_dirty_offset, end_offset)."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Something in it has waited longer than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class CompactionResult(NamedTuple):
    """What a run did. `first_dirty_offset` goes into the cleaner's checkpoint; None if the run was given up, or had
    nothing to do."""

    first_dirty_offset: int | None
    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


# --- choosing ---------------------------------------------------------------------------------------------------------


def cleanable(partition: Partition, first_dirty_offset: int | None, now_ms: int) -> Cleanable:
    """What could be cleaned now; `first_dirty_offset` is the checkpoint's, None if it has none."""
    start = first_dirty_offset
    if start is None or not partition.log_start_offset <= start <= partition.log_end_offset:
        start = partition.log_start_offset  # a log that was cut or restarted: look at all of it again
    end = max(start, _first_uncleanable(partition, start, now_ms))
    closed = partition.segments[:-1]
    clean = sum(segment.size_bytes for segment in closed if segment.base_offset < start)
    dirty = [segment for segment in closed if start <= segment.base_offset < end]
    # A segment in which the dirty part begins counts as dirty, as what it would cost to read.
    inside = partition.segment_index(start)
    if 0 <= inside < len(closed) and closed[inside].base_offset < start < end:
        clean -= closed[inside].size_bytes
        dirty.insert(0, closed[inside])
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    return Cleanable(start, end, clean, dirty_bytes, _is_overdue(partition, dirty, now_ms))


def _first_uncleanable(partition: Partition, start: int, now_ms: int) -> int:
    """Neither the active segment, nor an undecided transaction, nor anything too young."""
    limit = min(partition.active_segment.base_offset, partition.last_stable_offset)
    lag_ms = partition.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in partition.segments[max(partition.segment_index(start), 0) : -1]:
            if newest_ms(segment) > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def _is_overdue(partition: Partition, dirty: Iterable[Segment], now_ms: int) -> bool:
    limit_ms = now_ms - max(partition.config.max_compaction_lag_ms, 0)
    firsts = [segment.first_timestamp() for segment in dirty]
    return any(0 < first < limit_ms for first in firsts)


def due(
    partitions: Iterable[Partition], checkpoints: Mapping[TopicPartition, int], now_ms: int
) -> list[tuple[Partition, Cleanable]]:
    """The partitions that need compaction; the one that needs it most comes first."""
    found = []
    for partition in partitions:
        if not partition.config.is_compacted:
            continue
        work = cleanable(partition, checkpoints.get(partition.topic_partition), now_ms)
        if work.dirty_bytes == 0 or work.end_offset <= work.first_dirty_offset:
            continue
        if work.is_overdue or work.dirty_ratio > partition.config.min_cleanable_dirty_ratio:
            found.append((partition, work))
    return sorted(found, key=lambda each: (each[1].is_overdue, each[1].dirty_ratio), reverse=True)


# --- cleaning ---------------------------------------------------------------------------------------------------------


def compact(
    partition: Partition, work: Cleanable, now_ms: int, *, entries_max: int = ENTRIES_MAX
) -> Generator[None, None, CompactionResult]:
    """Clean a partition, a chunk at a step."""
    if work.end_offset <= work.first_dirty_offset:
        return CompactionResult(None)  # its end was cut since it was chosen
    run = _Run(partition, work, now_ms, entries_max)
    try:
        if not (yield from run.read_keys()):
            return CompactionResult(None)
        for group in run.groups():
            if not (yield from run.clean_group(group)):
                return CompactionResult(None)
    except WireError as error:
        raise CorruptMessageError(f"{partition.topic_partition} cannot be compacted: {error}") from error
    return run.result()


class _Run:
    def __init__(self, partition: Partition, work: Cleanable, now_ms: int, entries_max: int) -> None:
        self.partition = partition
        self.work = work
        self.now_ms = now_ms
        self._truncation_count = partition.truncation_count
        self.keys = KeyMap(work.first_dirty_offset, entries_max)
        self.transactions = Transactions()
        self.producers: dict[int, LastRecord] = last_records(partition.producers.entries)
        self.records_read = self.records_kept = self.bytes_read = self.bytes_written = 0

    def result(self) -> CompactionResult:
        return CompactionResult(
            self.keys.end_offset, self.records_read, self.records_kept, self.bytes_read, self.bytes_written
        )

    def _is_unchanged(self, segment: Segment) -> bool:
        """Whether neither retention nor a truncation has touched a segment since the run began."""
        return segment in self.partition.segments and self.partition.truncation_count == self._truncation_count

    # First pass: which keys there are in the dirty part.

    def read_keys(self) -> Generator[None, None, bool]:
        """Collect them; False if the log has changed under us."""
        transactions = Transactions()
        start = max(self.partition.segment_index(self.work.first_dirty_offset), 0)
        for segment, following in pairwise(self.partition.segments[start:]):
            if segment.base_offset >= self.work.end_offset:
                break
            if not self._is_unchanged(segment):
                return False
            transactions.expect(self._aborted_in(segment))
            for batch in _batches(segment):
                if batch is None:
                    yield
                    if not self._is_unchanged(segment):
                        return False
                elif batch.base_offset >= self.work.end_offset:
                    break
                elif not self._note_keys(batch, transactions):
                    return True
            # Offsets may be missing here, as in a copy of a compacted log. They must not be looked for again and again.
            self.keys.end_offset = max(self.keys.end_offset, min(following.base_offset, self.work.end_offset))
        return True

    def _note_keys(self, batch: AnyBatch, transactions: Transactions) -> bool:
        """Add the keys of a batch; False if the map is full."""
        if isinstance(batch, BatchView) and batch.is_control:
            transactions.end(batch)
        elif not (isinstance(batch, BatchView) and transactions.is_aborted(batch)):
            records = batch.records()
            if batch.last_offset >= self.work.first_dirty_offset and not self.keys.has_room_for(len(records)):
                return False
            for record in records:
                if record.key is not None and record.offset >= self.work.first_dirty_offset:
                    self.keys.put(bytes(record.key), record.offset)
        self.keys.end_offset = max(self.keys.end_offset, batch.next_offset)
        return True

    def _aborted_in(self, segment: Segment) -> list[AbortedTxn]:
        segments = self.partition.segments
        index = segments.index(segment)
        end = segments[index + 1].base_offset if index + 1 < len(segments) else self.partition.log_end_offset
        return self.partition.aborted_transactions(segment.base_offset, end)

    # Second pass: the log up to the end of the map, in new segments.

    def groups(self) -> list[list[Segment]]:
        """Neighbours that fit into one segment together, so that small remains do not stay in many files."""
        config = self.partition.config
        groups: list[list[Segment]] = []
        for segment in self.partition.segments[:-1]:
            if segment.base_offset >= self.keys.end_offset:
                break
            if groups and _fit_together([*groups[-1], segment], config.segment_bytes, config.segment_index_bytes):
                groups[-1].append(segment)
            else:
                groups.append([segment])
        return groups

    def clean_group(self, group: list[Segment]) -> Generator[None, None, bool]:
        """Write a group anew and put it in place; False if the log has changed under us."""
        partition = self.partition
        target = Segment.create(
            partition.directory, group[0].base_offset, partition.config, self.now_ms, state=CLEANED_SUFFIX
        )
        modified_ms = group[-1].modified_ms()
        try:
            is_whole = yield from self._copy(group, _Writer(target, partition))
        except WireError:
            self._remove(target)
            raise
        if not is_whole:
            self._remove(target)
            return False
        target.close_indexes()
        target.sync()
        partition.storage.disk.set_modified(target.file.path, modified_ms)
        partition.replace_segments([target], group, self.now_ms)
        self.bytes_written += target.size_bytes
        return True

    def _copy(self, group: list[Segment], writer: _Writer) -> Generator[None, None, bool]:
        """Write what stays of a group; False if the log has changed under us."""
        for segment in group:
            if not self._is_unchanged(segment):
                return False
            self.transactions.expect(self._aborted_in(segment))
            for batch in _batches(segment):
                if batch is None:
                    writer.write()
                    yield
                    if not self._is_unchanged(segment):
                        return False
                else:
                    self._clean_batch(batch, writer)
        writer.write()
        return all(map(self._is_unchanged, group))

    def _remove(self, target: Segment) -> None:
        disk = self.partition.storage.disk
        target.close()
        for file in target.files():
            if disk.exists(file.path):
                disk.unlink(file.path)

    def _clean_batch(self, batch: AnyBatch, writer: _Writer) -> None:
        self.bytes_read += batch.size_bytes
        if not isinstance(batch, BatchView):
            writer.add(bytes(batch.data), batch)  # what magic 0 and 1 left behind is carried along as it is
            return
        result = batch_retention(batch, self.transactions, self.producers, self.keys.end_offset, self.now_ms)
        if result.kept_abort is not None:
            writer.target.txn_index.append(result.kept_abort)
        if result.retention is BatchRetention.DELETE:
            self.records_read += batch.record_count
            return
        self._filter(batch, result, writer)

    def _filter(self, batch: BatchView, result: BatchRetentionResult, writer: _Writer) -> None:
        records = batch.records()
        kept: set[int] = set()
        has_tombstone = False
        for record in records if not result.drops_records else ():
            if batch.is_control or keeps(batch, record, self.keys, self.now_ms):
                kept.add(record.offset)
                has_tombstone = has_tombstone or record.value is None
        self.records_read += len(records)
        self.records_kept += len(kept)
        if not kept and result.retention is not BatchRetention.RETAIN_EMPTY:
            return
        is_due = batch.delete_horizon_ms is None and (result.needs_horizon or (has_tombstone and not batch.is_control))
        if len(kept) == len(records) and not is_due:
            writer.add(bytes(batch.data), batch)
            return
        horizon = self.now_ms + self.partition.config.delete_retention_ms if is_due else None
        writer.add(filter_batch(batch, lambda record: record.offset in kept, delete_horizon_ms=horizon), batch)


class _Writer:
    """Gathers batches for one segment and writes them in large pieces."""

    def __init__(self, target: Segment, partition: Partition) -> None:
        self.target = target
        self._config = partition.config
        self._buffers: list[bytes] = []
        self._batches: list[IndexedBatch] = []
        self._size = 0

    def add(self, data: bytes, original: AnyBatch) -> None:
        self._buffers.append(data)
        max_timestamp = read_header(data).max_timestamp if isinstance(original, BatchView) else original.max_timestamp
        self._batches.append((original.last_offset, max_timestamp, len(data)))
        self._size += len(data)
        if self._size >= _WRITE_BYTES:
            self.write()

    def write(self) -> None:
        if self._buffers:
            self.target.append(self._buffers, self._batches, self._config)
            self._buffers, self._batches, self._size = [], [], 0


def _batches(segment: Segment) -> Iterator[AnyBatch | None]:
    """The whole batches of a segment, with None to pause at; damage is an error."""
    handle = segment.file.pin()  # others may open many files in a pause
    try:
        walk = check_batches(handle, segment.size_bytes)
        while True:
            try:
                found = next(walk)
            except StopIteration as stop:
                if stop.value.reason:
                    raise WireError(
                        "RecordBatch", stop.value.position, f"{segment.file.path}: {stop.value.reason}"
                    ) from None
                return
            if found is None:
                yield None
            elif found[1].size_bytes > CHUNK_BYTES:
                yield read_batch(handle, found[0], found[1].size_bytes)  # the walk gave its header only
            else:
                yield found[1]
    finally:
        segment.file.unpin()


def _fit_together(segments: list[Segment], segment_bytes: int, index_bytes: int) -> bool:
    first, last = segments[0], segments[-1]
    return (
        sum(segment.size_bytes for segment in segments) <= segment_bytes
        and sum(len(segment.offset_index) for segment in segments) * OFFSET_ENTRY_BYTES <= index_bytes
        and sum(len(segment.time_index) for segment in segments) * TIME_ENTRY_BYTES <= index_bytes
        and last.next_offset()[0] - 1 - first.base_offset <= RELATIVE_OFFSET_MAX
    )
