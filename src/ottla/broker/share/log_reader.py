"""Reads the log for a share group: finds the batches of a fetch and their position in the file.

It reads only as many batch headers as the fetch can use. The records themselves are not read: a response holds a span
of the file.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.broker.network.send_queue import FileSpan
from ottla.broker.share.edge import Source
from ottla.core.share.partition.events import ReadBatch
from ottla.log.disk import File
from ottla.log.read import FetchRegion, Isolation
from ottla.log.segment import Segment
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES

__all__ = ["BatchRange", "LogRead", "Reader"]

_WINDOW_BYTES: Final = 8192
# Of magic 2: base offset, length, magic, attributes, last offset delta, producer id. The first three are always there.
_HEADER: Final = struct.Struct(">qi4xb4xhi16xq")
_MARKS: Final = 0x30
_MARKED: Final = {0x00: (False, False), 0x10: (True, False), 0x20: (False, True), 0x30: (True, True)}
"""By the bits of a batch: whether it belongs to a transaction, and whether it is a marker."""


class LogRead(NamedTuple):
    """The bytes that can be read from an offset on."""

    fetch_offset: int
    region: FetchRegion | None = None
    is_settled: bool = False
    """Waiting would not make it more: what follows lies in another segment, or the log has lost what was looked for."""

    @property
    def length(self) -> int:
        return 0 if self.region is None else self.region.length

    @property
    def aborted(self) -> list[AbortedTransaction] | None:
        """The aborted transactions that reach into it; None if data are read whether they are committed or not."""
        if self.region is None or self.region.aborted_transactions is None:
            return None
        return [AbortedTransaction(each.first_offset, each.producer_id) for each in self.region.aborted_transactions]


class BatchRange:
    """Consecutive batches of a file."""

    __slots__ = ("_region", "_starts", "batches", "end")

    def __init__(self, region: FetchRegion, fetch_offset: int, until_offset: int) -> None:
        """The whole batches of a region, up to the one that holds `until_offset`."""
        self.batches: list[ReadBatch] = []
        self._starts: list[int] = []
        """Their positions."""
        self._region = region
        self.end = region.position
        """The position behind the last batch."""
        if region.file is not None:
            self._walk(region.file.handle(), fetch_offset, until_offset)

    def _walk(self, handle: File, fetch_offset: int, until_offset: int) -> None:
        position, end = self.end, self.end + self._region.length
        window, start = b"", position
        while end - position > LOG_OVERHEAD_BYTES:
            at = position - start
            if at + HEADER_BYTES > len(window):
                window, start, at = _window(handle, position, end), position, 0
            base_offset, length, magic, attributes, last_offset_delta, producer_id = _HEADER.unpack_from(window, at)
            size = length + LOG_OVERHEAD_BYTES
            if length <= 0 or size > end - position:
                break  # the last one is cut
            if magic == 2:
                marks = attributes & _MARKS
                last_offset = base_offset + last_offset_delta
                batch = ReadBatch(base_offset, last_offset, producer_id, *_MARKED[marks])
            else:  # it does not say where it begins; not behind what was asked for, at any rate
                last_offset, base_offset = base_offset, min(base_offset, fetch_offset)
                batch = ReadBatch(base_offset, last_offset)
            if not self.batches:  # what was compacted away in front of it does not count
                until_offset += max(0, base_offset - fetch_offset)
            self.batches.append(batch)
            self._starts.append(position)
            position += size
            if last_offset >= until_offset:
                break
        self.end = position

    def span(self, first_offset: int, last_offset: int) -> FileSpan:
        """The span from the batch with one offset to the batch with another."""
        assert self._region.file is not None
        first = _index(self.batches, first_offset)
        last = _index(self.batches, last_offset)
        end = self._starts[last + 1] if last + 1 < len(self._starts) else self.end
        return FileSpan(self._region.file, self._starts[first], end - self._starts[first])


def _window(handle: File, position: int, end: int) -> bytes:
    """Some bytes from a position on: at least as many as a header has."""
    window = handle.read(min(_WINDOW_BYTES, end - position), position)
    # The last message of magic 0 or 1 may be shorter.
    return window if len(window) >= HEADER_BYTES else window + bytes(HEADER_BYTES)


def _index(batches: Sequence[ReadBatch], offset: int) -> int:
    if batches[0].last_offset >= offset:
        return 0
    if batches[-2].last_offset < offset:
        return len(batches) - 1
    return bisect_left(batches, offset, key=lambda batch: batch.last_offset)


class Reader:
    """Reads a partition for one share group. A read mostly begins where the last one ended, which is remembered."""

    __slots__ = ("_next_offset", "_place", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._next_offset = -1
        self._place: tuple[Segment, int] | None = None
        """Where what follows the last batch that was read begins."""

    def look(self, offset: int, max_bytes: int, isolation: Isolation) -> LogRead:
        """What a fetch at an offset would find. Raises LogError, also for an offset outside the log."""
        log = self._source.log
        hint = self._place if offset == self._next_offset else None
        region = log.read(offset, max_bytes, isolation, min_one_batch=True, hint=hint)
        return LogRead(offset, region, region.segment_base_offset < log.active_segment.base_offset)

    def read(self, log_read: LogRead, until_offset: int) -> BatchRange:
        """The batches up to the one that has an offset. Raises StorageError."""
        log, region = self._source.log, log_read.region
        assert region is not None
        try:
            batch_range = BatchRange(region, log_read.fetch_offset, until_offset)
        except OSError as error:
            raise log.storage.fail(error, f"reading {log.topic_partition}") from error
        segment = log.segments[max(0, log.segment_index(region.segment_base_offset))]
        if batch_range.batches and segment.file is region.file:
            self._next_offset = batch_range.batches[-1].last_offset + 1
            self._place = segment, batch_range.end
        return batch_range
