"""Reading the log of a partition from the disk in small steps: that of a shard into its core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from ottla.log.partition import Partition
from ottla.log.read import Isolation
from ottla.wire.batch import AnyBatch, split_batches

__all__ = ["load_steps"]

_READ_BYTES: Final = 1 << 17


class Reader(Protocol):
    """Who takes what is read: `Replay`, for a core."""

    def steps(self, batch: AnyBatch) -> Iterator[None]: ...


def load_steps(partition: Partition, reader: Reader) -> Iterator[None]:
    """Read all that is written; stops every few records, so that the caller can do something else meanwhile.

    The end of the log is looked up again each time: nobody but who reads it will append, and does not yet.
    """
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        region = partition.read(offset, _READ_BYTES, Isolation.LOG_END, min_one_batch=True)
        if region.file is None or not region.length:
            return
        data = region.file.handle().read(region.length, region.position)
        for batch in split_batches(data):
            if batch.last_offset >= offset:
                yield from reader.steps(batch)
                offset = batch.last_offset + 1
