"""Reading the log for a share group: where the records lie, and which batches they are.

Only as many batch headers are looked at as a fetch can have use for. The records themselves stay where they are: an
answer holds their place in the file.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.broker.outgoing import FileSpan
from ottla.broker.share.edge import Source
from ottla.log.disk import File
from ottla.log.read import FetchRegion, Isolation
from ottla.log.segment import Segment
from ottla.share.partition.transactions import AbortedTransaction, ReadBatch
from ottla.wire.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES

__all__ = ["Reader", "Reading", "Stretch"]

_WINDOW_BYTES: Final = 8192
# Of magic 2: base offset, length, magic, attributes, last offset delta, producer id. The first three are always there.
_HEADER: Final = struct.Struct(">qi4xb4xhi16xq")
_TRANSACTIONAL: Final = 1 << 4
_CONTROL: Final = 1 << 5


class Reading(NamedTuple):
    """What there is to read at an offset."""

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
        return [AbortedTransaction(each.producer_id, each.first_offset) for each in self.region.aborted_transactions]


class Stretch:
    """Batches that lie one behind the other in a file."""

    __slots__ = ("_places", "_region", "batches", "end")

    def __init__(self, region: FetchRegion, fetch_offset: int, until_offset: int) -> None:
        """Of what there is to read, the whole batches up to the one that has an offset."""
        self.batches: list[ReadBatch] = []
        self._places: list[tuple[int, int]] = []
        self._region = region
        self.end = region.position
        """The position behind the last batch."""
        if region.file is not None:
            self._walk(region.file.handle(), fetch_offset, until_offset)

    def _walk(self, handle: File, fetch_offset: int, until_offset: int) -> None:
        end = self.end + self._region.length
        window, start = b"", self.end
        while end - self.end > LOG_OVERHEAD_BYTES:
            at = self.end - start
            if at + HEADER_BYTES > len(window):
                window, start, at = handle.read(min(_WINDOW_BYTES, end - self.end), self.end), self.end, 0
                if len(window) < HEADER_BYTES:
                    window += bytes(HEADER_BYTES)  # the last message of magic 0 or 1 may be shorter
            base_offset, length, magic, attributes, last_offset_delta, producer_id = _HEADER.unpack_from(window, at)
            if not 0 < length <= end - self.end - LOG_OVERHEAD_BYTES:
                return  # the last one is cut
            if magic == 2:
                batch = ReadBatch(
                    base_offset,
                    base_offset + last_offset_delta,
                    producer_id,
                    attributes & _TRANSACTIONAL != 0,
                    attributes & _CONTROL != 0,
                )
            else:  # it does not say where it begins; not behind what was asked for, at any rate
                batch = ReadBatch(min(base_offset, fetch_offset), base_offset)
            if not self.batches:  # what was compacted away in front of it does not count
                until_offset += max(0, batch.base_offset - fetch_offset)
            self.batches.append(batch)
            self._places.append((self.end, self.end + length + LOG_OVERHEAD_BYTES))
            self.end += length + LOG_OVERHEAD_BYTES
            if batch.last_offset >= until_offset:
                return

    def span(self, first_offset: int, last_offset: int) -> FileSpan:
        """The place of the batches from the one with an offset to the one with another."""
        assert self._region.file is not None
        first = _index(self.batches, first_offset)
        last = _index(self.batches, last_offset)
        position = self._places[first][0]
        return FileSpan(self._region.file, position, self._places[last][1] - position)


def _index(batches: Sequence[ReadBatch], offset: int) -> int:
    if batches[0].last_offset >= offset:
        return 0
    if batches[-2].last_offset < offset:
        return len(batches) - 1
    return bisect_left(batches, offset, key=lambda batch: batch.last_offset)


class Reader:
    """Reads a partition for one share group, which mostly goes on where it has stopped."""

    __slots__ = ("_next_offset", "_place", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._next_offset = -1
        self._place: tuple[Segment, int] | None = None
        """Where what follows the last batch that was read begins."""

    def look(self, offset: int, max_bytes: int, isolation: Isolation) -> Reading:
        """What a fetch at an offset would find. Raises LogError, also if the offset is not in the log."""
        log = self._source.log
        hint = self._place if offset == self._next_offset else None
        region = log.read(offset, max_bytes, isolation, min_one_batch=True, hint=hint)
        return Reading(offset, region, region.segment_base_offset < log.active_segment.base_offset)

    def read(self, reading: Reading, until_offset: int) -> Stretch:
        """The batches up to the one that has an offset. Raises StorageError."""
        log, region = self._source.log, reading.region
        assert region is not None
        try:
            stretch = Stretch(region, reading.fetch_offset, until_offset)
        except OSError as error:
            raise log.storage.fail(error, f"reading {log.topic_partition}") from error
        segment = log.segments[max(0, log.segment_index(region.segment_base_offset))]
        if stretch.batches and segment.file is region.file:
            self._next_offset = stretch.batches[-1].last_offset + 1
            self._place = segment, stretch.end
        return stretch
