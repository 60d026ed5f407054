"""Reads the log of a partition in small steps, such as that of a shard into its core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from ottla.log.partition import Partition
from ottla.log.read import Isolation
from ottla.wire.batch import AnyBatch, split_batches

__all__ = ["load_steps"]

_READ_BYTES: Final = 1 << 17


class Reader(Protocol):
    """Takes the batches that are read. `Replay` is one, for a core."""

    def steps(self, batch: AnyBatch) -> Iterator[None]: ...


def load_steps(
    partition: Partition, reader: Reader, start_offset: int = 0, end_offset: int | None = None
) -> Iterator[None]:
    """Read the log, all of it or a part; yields every few records, so that the loop can serve requests in between.

    Only the coordinator that is being loaded appends to the log, and it does not before this is done.
    """
    offset = max(start_offset, partition.log_start_offset)
    while offset < (partition.log_end_offset if end_offset is None else end_offset):
        region = partition.read(offset, _READ_BYTES, Isolation.LOG_END, min_one_batch=True)
        if not region.length:
            return
        for batch in split_batches(partition.bytes_of(region)):
            if batch.last_offset >= offset:
                yield from reader.steps(batch)
                offset = batch.last_offset + 1
