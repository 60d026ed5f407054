"""A segment: a `.log` file and its three indexes.

What goes to the indexes, and when, follows Apache Kafka to the byte. Before a batch is counted, if more than
`index.interval.bytes` were written since the batch of the last entry began, the offset index gets (the batch's last
offset, where it begins), and the time index the largest timestamp so far if it is newer than its last entry. So the
first batch never has an entry, and after a restart the count begins anew. A closed segment's time index ends with its
largest timestamp.

`size_bytes` is where the next write goes. It is counted here, not asked of the file: what a failed write has left
behind it is not part of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ottla.log.config import LogConfig
from ottla.log.disk import Buffer
from ottla.log.files import Directory, LogFile
from ottla.log.names import LOG_SUFFIX, file_name
from ottla.log.offset_index import OFFSET_ENTRY_BYTES, OffsetIndex
from ottla.log.scan import BatchPosition, find_batch, walk_headers
from ottla.log.time_index import NO_TIMESTAMP, TIME_ENTRY_BYTES, TimeIndex
from ottla.log.txn_index import TxnIndex
from ottla.wire.batch import AnyBatch

__all__ = ["RELATIVE_OFFSET_MAX", "IndexedBatch", "Segment"]

RELATIVE_OFFSET_MAX: Final = (1 << 31) - 1
_PAGE_ENTRIES: Final = 4096 // OFFSET_ENTRY_BYTES
_SHORT_LOOK_BYTES: Final = 1 << 22


# What the indexes need to know of a batch: its last offset, its largest timestamp, its size in bytes.
IndexedBatch = tuple[int, int, int]


class Segment:
    __slots__ = (
        "_bytes_since_entry",
        "_first_timestamp",
        "_is_index_full",
        "_max_timestamp",
        "_max_timestamp_relative_offset",
        "base_offset",
        "created_ms",
        "file",
        "offset_index",
        "roll_jitter_ms",
        "size_bytes",
        "state",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        directory: Directory,
        base_offset: int,
        size_bytes: int,
        config: LogConfig,
        now_ms: int,
        *,
        state: str = "",
        is_new: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.state = state
        self.file = LogFile(directory, file_name(base_offset, LOG_SUFFIX, state))
        self.offset_index = OffsetIndex(directory, base_offset, state, is_new=is_new)
        self.time_index = TimeIndex(directory, base_offset, state, is_new=is_new)
        self.txn_index = TxnIndex(directory, base_offset, state, is_new=is_new)
        self.created_ms = now_ms
        jitter_limit = min(config.segment_jitter_ms, config.roll_ms)
        self.roll_jitter_ms = directory.storage.jitter(jitter_limit) if jitter_limit > 0 else 0
        self._bytes_since_entry = 0
        self._is_index_full: bool | None = False if is_new else None
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = NO_TIMESTAMP if is_new else None
        self._max_timestamp_relative_offset = 0

    @classmethod
    def create(
        cls, directory: Directory, base_offset: int, config: LogConfig, now_ms: int, *, state: str = ""
    ) -> Segment:
        """A new, empty segment. Its `.log` and `.index` are there at once, the other indexes when they are needed.

        Files of the same name that an earlier life left behind are emptied. Without an `.index` Apache Kafka would
        recover this segment before those below it, and take its leader's epoch for one that begins here.
        """
        segment = cls(directory, base_offset, 0, config, now_ms, state=state, is_new=True)
        segment.file.handle(create=True).truncate(0)
        for index in (segment.offset_index, segment.time_index, segment.txn_index):
            index.reset()
        segment.offset_index.write(create=True)
        segment.offset_index.file.close()
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, size_bytes={self.size_bytes})"

    # --- appending ----------------------------------------------------------------------------------------------------

    def should_roll(
        self, config: LogConfig, now_ms: int, size_bytes: int, max_timestamp: int, last_offset: int
    ) -> bool:
        """Whether an append has to go to a new segment."""
        if self.size_bytes > config.segment_bytes - size_bytes or last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if self._is_index_full is not False and self.is_index_full(config):
            return True
        if self.size_bytes == 0:
            return False
        return self.time_waited_for_roll(now_ms, max_timestamp) > config.roll_ms - self.roll_jitter_ms

    def is_index_full(self, config: LogConfig) -> bool:
        if self._is_index_full is None:
            self._note_index_full(config)
        return self._is_index_full is True

    def _note_index_full(self, config: LogConfig) -> None:
        offset_entries_max = config.segment_index_bytes // OFFSET_ENTRY_BYTES
        time_entries_max = config.segment_index_bytes // TIME_ENTRY_BYTES - 1  # one is for the closing entry
        self._is_index_full = len(self.offset_index) >= offset_entries_max or len(self.time_index) >= time_entries_max

    def forget_index_full(self) -> None:
        """Look again: the allowed size has changed."""
        self._is_index_full = None

    def time_waited_for_roll(self, now_ms: int, max_timestamp: int) -> int:
        """How long data have waited here: by their own timestamps, or by the clock if they have none."""
        first = self.first_timestamp()
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 if there is none."""
        if self._first_timestamp is None:
            if self.size_bytes == 0:
                return NO_TIMESTAMP
            header = next(walk_headers(self.file.handle(), 0, self.size_bytes), None)
            self._first_timestamp = NO_TIMESTAMP if header is None else header[1].max_timestamp
        return self._first_timestamp

    def append(self, buffers: Sequence[Buffer], batches: Iterable[IndexedBatch], config: LogConfig) -> None:
        """Write batches with one call and index them."""
        self.file.handle().write(buffers, self.size_bytes)
        self.add_to_indexes(batches, config)

    def add_to_indexes(self, batches: Iterable[IndexedBatch], config: LogConfig) -> None:
        """Count batches that lie in the file from `size_bytes` on."""
        max_timestamp = self.max_timestamp()
        for last_offset, timestamp, size_bytes in batches:
            if self._first_timestamp is None and self.size_bytes == 0:
                self._first_timestamp = timestamp
            if timestamp > max_timestamp:
                max_timestamp = self._max_timestamp = timestamp
                self._max_timestamp_relative_offset = last_offset - self.base_offset
            if self._bytes_since_entry > config.index_interval_bytes and not self.is_index_full(config):
                self.offset_index.append(last_offset - self.base_offset, self.size_bytes)
                self.time_index.maybe_append(max_timestamp, self._max_timestamp_relative_offset)
                self._note_index_full(config)
                self._bytes_since_entry = 0
            self.size_bytes += size_bytes
            self._bytes_since_entry += size_bytes

    # --- timestamps ---------------------------------------------------------------------------------------------------

    def max_timestamp(self) -> int:
        """The largest timestamp; -1 if there is none. Of a segment that was just opened, the last one indexed."""
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_relative_offset = self.time_index.last_entry()
        return self._max_timestamp

    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has the largest timestamp."""
        self.max_timestamp()
        return self.base_offset + self._max_timestamp_relative_offset

    # --- finding ------------------------------------------------------------------------------------------------------

    def _walk_from(self, relative_offset: int) -> Iterator[tuple[int, AnyBatch]]:
        """Headers from the greatest index entry at or below an offset on, or, if that one is wrong, all of them."""
        relative, position = self.offset_index.lookup(relative_offset)
        handle = self.file.handle()
        if position:
            headers = walk_headers(handle, position, self.size_bytes)
            first = next(headers, None)
            if first is not None and first[1].last_offset == self.base_offset + relative:
                yield first
                yield from headers
                return
        yield from walk_headers(handle, 0, self.size_bytes)

    def find_batch(self, offset: int, start: int | None = None) -> BatchPosition | None:
        """The first batch that ends at or past an offset; None if all end before it.

        `start` is a position that the caller knows: a batch begins there, and none before it has the offset.
        """
        if start is not None:
            return find_batch(self.file.handle(), start, self.size_bytes, offset)
        relative, position = self.offset_index.lookup(offset - self.base_offset)
        handle = self.file.handle()
        if position:
            indexed = find_batch(handle, position, self.size_bytes, self.base_offset + relative)
            if (
                indexed is not None
                and indexed.position == position
                and indexed.last_offset - self.base_offset == relative
            ):
                if indexed.last_offset >= offset:
                    return indexed
                return find_batch(handle, position + indexed.size_bytes, self.size_bytes, offset)
        # No entry, or one that points at nothing it can mean: slow is better than wrong.
        return find_batch(handle, 0, self.size_bytes, offset)

    def next_offset(self) -> tuple[int, int]:
        """The offset after the last batch, and the position where that batch ends: what follows it is damage."""
        end, offset = 0, self.base_offset
        for position, batch in self._walk_from(self.offset_index.last_entry()[0]):
            end, offset = position + batch.size_bytes, batch.next_offset
        return offset, end

    # --- ending, cutting, leaving -------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop the batches that end at or past an offset; gives the offset at which the log now ends.

        A batch is never cut in two: if the offset lies inside of one, all of it goes.
        """
        batch = self.find_batch(offset)
        relative = offset - self.base_offset
        self.offset_index.truncate_to(relative)
        self.time_index.truncate_to(relative)
        self.txn_index.truncate_to(offset)
        end_offset = offset
        if batch is not None:
            self.file.handle().truncate(batch.position)
            self.size_bytes = batch.position
            end_offset = min(offset, batch.base_offset)
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._bytes_since_entry = 0
        self._is_index_full = None
        self._read_max_timestamp()
        return end_offset

    def _read_max_timestamp(self) -> None:
        """Find the largest timestamp again, from the time index and what follows its last entry."""
        timestamp, relative = self.time_index.last_entry()
        for _, batch in self._walk_from(relative):
            if batch.max_timestamp > timestamp:
                timestamp, relative = batch.max_timestamp, batch.last_offset - self.base_offset
        self._max_timestamp, self._max_timestamp_relative_offset = timestamp, relative

    def has_whole_indexes(self, config: LogConfig) -> bool:
        """Whether a closed segment's indexes have their last entries, as far as a short look can tell."""
        if not self._has_true_entries():
            return False
        _, indexed = self.offset_index.last_entry()
        timestamp, relative = self.time_index.last_entry()
        start = min(indexed, self.offset_index.lookup(relative)[1])
        if self.size_bytes - start > _SHORT_LOOK_BYTES:
            return False
        end = start
        for position, batch in walk_headers(self.file.handle(), start, self.size_bytes):
            if position - indexed > config.index_interval_bytes or batch.max_timestamp > timestamp:
                return False
            end = position + batch.size_bytes
        return end == self.size_bytes

    def _has_true_entries(self) -> bool:
        """Whether the offset index's last page, which a power cut may have torn, names batches that are there."""
        entries = self.offset_index.entries(max(0, len(self.offset_index) - _PAGE_ENTRIES))
        handle = self.file.handle()
        for relative, position in entries:
            found = next(walk_headers(handle, position, self.size_bytes), None)
            if found is None or found[1].last_offset != self.base_offset + relative:
                return False
        return True

    def reset_for_recovery(self) -> None:
        """Empty the indexes and forget what they said; `add_to_indexes` is then called with every batch."""
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.reset()
        self.size_bytes = 0
        self._bytes_since_entry = 0
        self._is_index_full = False
        self._first_timestamp = None
        self._max_timestamp, self._max_timestamp_relative_offset = NO_TIMESTAMP, 0

    def end_recovery(self) -> None:
        """Close the indexes as on a roll. The next append counts bytes from here, as after any opening."""
        self.close_indexes()
        self._bytes_since_entry = 0

    def close_indexes(self) -> None:
        """Write the indexes out, with the closing entry of the time index; both files exist afterwards."""
        self.time_index.maybe_append(self.max_timestamp(), self._max_timestamp_relative_offset)
        self.offset_index.write(create=True)
        self.time_index.write(create=True)
        self.txn_index.write()

    def close(self) -> None:
        for file in self.files():
            file.close()

    def files(self) -> tuple[LogFile, LogFile, LogFile, LogFile]:
        return self.file, self.offset_index.file, self.time_index.file, self.txn_index.file

    def change_state(self, state: str) -> None:
        """Rename the files: from `.cleaned` to `.swap`, to "" and so on. Those that do not exist only change names."""
        for file in self.files():
            name = file.name.removesuffix(self.state) + state
            if file is self.file or file.exists():
                file.rename(name)
            else:
                file.name = name
        self.state = state

    def sync(self) -> None:
        """Make the log and what was written of the indexes last."""
        self.file.handle().sync()
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.sync()

    def modified_ms(self) -> int:
        """When the `.log` was last written, by the disk's clock."""
        return self.file.directory.storage.disk.modified_ms(self.file.path)
