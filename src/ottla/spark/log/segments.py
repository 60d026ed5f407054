"""A segment and its indexes.

Indexes are hints. After a crash they may be incomplete or torn, Apache Kafka preallocates those of the active segment,
and a copy may lack them. So an entry counts only if the log has the entry's batch at that position; else the headers of
the batches are read from the beginning.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from ottla.log.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, file_name
from ottla.log.scan import find_batch, read_batch, walk_headers
from ottla.log.txn_index import AbortedTxn, TxnIndex
from ottla.spark.log.directory import PartitionFiles, SegmentFiles, read_file
from ottla.wire.batch import AnyBatch
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from types import TracebackType

    from ottla.spark.log.storage import SourceFile
    from ottla.wire.columns_table import Int64s

__all__ = ["NO_BATCH", "BatchPosition", "LogEnd", "Segment"]

TAIL_BYTES: Final = 1 << 20
"""How much of a log's end has its checksums verified."""
NO_BATCH: Final = -1
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = [("timestamp", ">i8"), ("offset", ">i4")]
_TXN_ENTRY: Final = TxnIndex.ENTRY


class BatchPosition(NamedTuple):
    """The position of a batch, and its first offset."""

    position: int
    base_offset: int


class LogEnd(NamedTuple):
    """Where the whole batches of a segment end."""

    position: int
    offset: int
    """The offset after the last batch."""
    last_position: int = NO_BATCH
    """The position of the last batch, if it was looked at."""


class OffsetEntry(NamedTuple):
    offset: int
    """The last one of the batch."""
    position: int


class OffsetIndex:
    """The entries of a segment's offset index, up to the unfilled ones at its end.

    Entries are read one by one, as a search comes by: planners are processes of their own, and to import numpy would
    take longer than the whole plan.
    """

    def __init__(self, data: bytes, base_offset: int, size_bytes: int) -> None:
        self._data = data
        self._base_offset = base_offset
        # Positions rise from above 0, for no entry is for the first batch. Unfilled entries are 0.
        places = range(len(data) // _OFFSET_ENTRY.size)
        self._count = bisect_left(places, True, key=lambda index: not 0 < self[index].position < size_bytes)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> OffsetEntry:
        offset, position = _OFFSET_ENTRY.unpack_from(self._data, index * _OFFSET_ENTRY.size)
        return OffsetEntry(self._base_offset + offset, position)

    def last_up_to(self, offset: int) -> int:
        """The number of the last entry whose offset is not after this one; -1 if there is none."""
        return bisect_right(range(self._count), offset, key=lambda index: self[index].offset) - 1

    def first_from(self, position: int) -> int:
        """The number of the first entry at a position or after it; the number of all if there is none."""
        return bisect_left(range(self._count), position, key=lambda index: self[index].position)


class Segment:
    """One segment of a partition, for lookups by offset and time. Use it as a context manager.

    `known_ends` are ends that the segment had earlier, in ascending order: a search may start there without a look at
    the index, which Apache Kafka preallocates with 10 MiB.
    """

    def __init__(self, partition: PartitionFiles, files: SegmentFiles, known_ends: Sequence[LogEnd] = ()) -> None:
        self.partition = partition
        self._known_ends = known_ends
        self.base_offset = files.base_offset
        self.size_bytes = files.size_bytes
        self.indexes = files.indexes
        self._file: SourceFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def file(self) -> SourceFile:
        if self._file is None:
            self._file = self.partition.storage.open(self.partition.file(file_name(self.base_offset, LOG_SUFFIX)))
        return self._file

    def _index(self, suffix: str) -> bytes:
        if suffix not in self.indexes:
            return b""
        return read_file(self.partition.storage, self.partition.file(file_name(self.base_offset, suffix))) or b""

    # --- offsets ------------------------------------------------------------------------------------------------------

    @cached_property
    def offset_index(self) -> OffsetIndex:
        return OffsetIndex(self._index(INDEX_SUFFIX), self.base_offset, self.size_bytes)

    def headers(self, position: int = 0) -> Iterator[tuple[int, AnyBatch]]:
        """Position and header of each batch from a position on, up to the first invalid one."""
        return walk_headers(self.file, position, self.size_bytes)

    def header_at(self, index: int) -> AnyBatch | None:
        """The header of the batch of an entry in the offset index; None if the entry is wrong."""
        offset, position = self.offset_index[index]
        found = next(self.headers(position), None)
        return found[1] if found is not None and found[1].last_offset == offset else None

    def position_before(self, offset: int) -> int:
        """The position at which to start the search for the batch with an offset; 0 if the index does not help."""
        for known in reversed(self._known_ends):
            if known.offset <= offset:
                return known.position
        index = self.offset_index.last_up_to(offset)
        if index < 0 or self.header_at(index) is None:
            return 0
        return self.offset_index[index].position

    def batch_at(self, offset: int) -> BatchPosition | None:
        """The batch with an offset, or else the first one after it; None if the segment ends before."""
        found = find_batch(self.file, self.position_before(offset), self.size_bytes, offset)
        return None if found is None else BatchPosition(found.position, found.base_offset)

    def split_points(self, count: int, start: int, end: int, *, may_walk: bool) -> list[BatchPosition]:
        """At most `count` batches that divide the bytes from `start` to `end` into parts of about the same size.

        Without a usable index all headers are read, if `may_walk` allows it.
        """
        step = (end - start) / (count + 1)
        wanted = [int(start + step * (number + 1)) for number in range(count)]
        found = self._indexed_batches(wanted)
        if may_walk:
            # The index is missing or ends early, as after a crash.
            reached = found[-1].position if found else start
            found += self._walked_batches([position for position in wanted if position > reached], reached)
        return [batch for batch in found if start < batch.position < end]

    def _indexed_batches(self, wanted: list[int]) -> list[BatchPosition]:
        """The first indexed batch at or after each position, as far as the index goes; none if it is wrong."""
        entries = self.offset_index
        found: dict[int, BatchPosition] = {}
        for position in wanted:
            index = entries.first_from(position)
            if index == len(entries):
                break
            header = self.header_at(index)
            if header is None:
                return []
            found[index] = BatchPosition(entries[index].position, header.base_offset)
        return list(found.values())

    def _walked_batches(self, wanted: list[int], start: int) -> list[BatchPosition]:
        found: list[BatchPosition] = []
        rest = iter(wanted)
        next_wanted = next(rest, None)
        for position, header in self.headers(start) if wanted else ():
            if next_wanted is None:
                break
            if position >= next_wanted:
                found.append(BatchPosition(position, header.base_offset))
                while next_wanted is not None and next_wanted <= position:
                    next_wanted = next(rest, None)
        return found

    def end(self) -> LogEnd:
        """The end of the valid batches; for the last segment, which may be torn."""
        end = self._known_ends[-1] if self._known_ends else LogEnd(self._tail_start(), self.base_offset)
        ends = [end]
        for position, header in self.headers(end.position):
            ends.append(LogEnd(position + header.size_bytes, header.next_offset, position))
        for before, after in pairwise(ends):
            is_in_tail = after.position > ends[-1].position - TAIL_BYTES
            if is_in_tail and not self._is_sound(after.last_position, after.position - after.last_position):
                return before._replace(offset=self._end_before(before.position, before.offset))
        return ends[-1]

    def _tail_start(self) -> int:
        """The last indexed batch before the bytes whose checksums are verified; 0 if there is none."""
        index = self.offset_index.first_from(self.size_bytes - TAIL_BYTES + 1) - 1
        return self.position_before(self.offset_index[index].offset) if index >= 0 else 0

    def _is_sound(self, position: int, size: int) -> bool:
        try:
            read_batch(self.file, position, size).check_crc()
        except WireError:
            return False
        return True

    def _end_before(self, position: int, known: int) -> int:
        """The offset after the batch that ends at a position; it is `known` if that batch's header was read."""
        if known > self.base_offset:
            return known
        end_offset = self.base_offset
        for first, header in self.headers(0):
            if first >= position:
                break
            end_offset = header.next_offset
        return end_offset

    # --- times --------------------------------------------------------------------------------------------------------

    @cached_property
    def time_entries(self) -> tuple[Int64s, Int64s]:
        """Largest timestamps so far, and the last offsets of their batches."""
        import numpy as np

        data, entry = self._index(TIME_INDEX_SUFFIX), np.dtype(_TIME_ENTRY)
        entries = np.frombuffer(data, entry, len(data) // entry.itemsize)
        timestamps, offsets = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
        rises = (np.diff(timestamps, prepend=-1) > 0) & (timestamps > 0)
        rises[1:] &= np.diff(offsets) > 0
        count = len(rises) if rises.all() else int(np.argmin(rises))
        return timestamps[:count], offsets[:count] + self.base_offset

    def is_older_than(self, timestamp: int) -> bool:
        """Whether the indexes of a closed segment prove that all its records are older than a time."""
        timestamps, offsets = self.time_entries
        if INDEX_SUFFIX not in self.indexes or not len(timestamps) or timestamps[-1] >= timestamp:
            return False
        indexed = self.offset_index
        # A closed segment's time index ends with its newest batch, mostly the last one. If that is before the last
        # entry of the other index, either older records follow or the file is truncated.
        return len(indexed) == 0 or bool(offsets[-1] >= indexed[len(indexed) - 1].offset)

    def first_at(self, timestamp: int, from_offset: int) -> int | None:
        """The first offset from `from_offset` on whose record is not older than a time."""
        timestamps, offsets = self.time_entries
        index = int(timestamps.searchsorted(timestamp)) - 1
        after = max(int(offsets[index]) if index >= 0 else self.base_offset, from_offset)
        for position, header in self.headers(self.position_before(after)):
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                for record in read_batch(self.file, position, header.size_bytes).records(copy=False):
                    if record.timestamp >= timestamp and record.offset >= from_offset:
                        return record.offset
        return None

    # --- transactions -------------------------------------------------------------------------------------------------

    def aborted(self) -> list[AbortedTxn] | None:
        """The aborted transactions whose markers are in this segment; None if the index is missing or damaged.

        Brokers create the file with the first abort, so without a file there was none, unless the other indexes are
        missing, too.
        """
        if TXN_INDEX_SUFFIX not in self.indexes:
            return [] if INDEX_SUFFIX in self.indexes else None
        data = self._index(TXN_INDEX_SUFFIX)
        if len(data) % _TXN_ENTRY.size:
            return None
        entries = list(_TXN_ENTRY.iter_unpack(data))
        if any(version != 0 or last < self.base_offset or first > last for version, _, first, last, _ in entries):
            return None
        return [AbortedTxn(*entry[1:]) for entry in entries]
