"""Reading the log for a share group: where the records lie, and which batches they are.

Only as many batch headers are looked at as a fetch can have use for. The records themselves stay where they are: an
answer holds their place in the file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.outgoing import FileSpan
from ottla.broker.share.edge import Source
from ottla.log.read import FetchRegion, Isolation
from ottla.log.scan import walk_headers
from ottla.share.partition.transactions import AbortedTransaction, ReadBatch
from ottla.wire.batch import AnyBatch, BatchView

__all__ = ["Reading", "Stretch", "look"]


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


def look(source: Source, offset: int, max_bytes: int, isolation: Isolation) -> Reading:
    """What a fetch at an offset would find. Raises LogError, also if the offset is not in the log."""
    log = source.log
    region = log.read(offset, max_bytes, isolation, min_one_batch=True)
    return Reading(offset, region, region.segment_base_offset < log.active_segment.base_offset)


class Stretch:
    """Batches that lie one behind the other in a file."""

    __slots__ = ("_file", "_places", "batches")

    def __init__(self, source: Source, reading: Reading, until_offset: int) -> None:
        """Of what there is to read, the whole batches up to the one that has an offset. Raises StorageError."""
        self.batches: list[ReadBatch] = []
        self._places: list[tuple[int, int]] = []
        assert reading.region is not None
        self._file = reading.region.file
        try:
            self._walk(reading.region, reading.fetch_offset, until_offset)
        except OSError as error:
            raise source.log.storage.fail(error, f"reading {source.topic_partition}") from error

    def _walk(self, region: FetchRegion, fetch_offset: int, until_offset: int) -> None:
        if self._file is None:
            return
        end = region.position + region.length
        for position, header in walk_headers(self._file.handle(), region.position, end):
            batch = _read_batch(header, fetch_offset)
            if not self.batches:  # what was compacted away in front of it does not count
                until_offset += max(0, batch.base_offset - fetch_offset)
            self.batches.append(batch)
            self._places.append((position, position + header.size_bytes))
            if batch.last_offset >= until_offset:
                return

    def span(self, first_offset: int, last_offset: int) -> FileSpan:
        """The place of the batches from the one with an offset to the one with another."""
        assert self._file is not None
        first = _index(self.batches, first_offset)
        last = _index(self.batches, last_offset)
        position = self._places[first][0]
        return FileSpan(self._file, position, self._places[last][1] - position)


def _index(batches: Sequence[ReadBatch], offset: int) -> int:
    return bisect_left(batches, offset, key=lambda batch: batch.last_offset)


def _read_batch(header: AnyBatch, fetch_offset: int) -> ReadBatch:
    if isinstance(header, BatchView):
        return ReadBatch(
            header.base_offset, header.last_offset, header.producer_id, header.is_transactional, header.is_control
        )
    # An old message set does not say where it begins; not behind what was asked for, at any rate.
    return ReadBatch(min(header.last_offset, fetch_offset), header.last_offset)
