"""Writes the rows of a task in rounds, and computes their digest."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.client.blocking import BlockingClient
from ottla.client.client import Client
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.transactions import Identity
from ottla.spark.sink.columns import Columns, records_of
from ottla.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Digest", "Records", "write_all"]

ROUND_RECORDS: Final = 10_000
ROUND_BYTES: Final = 4 * 1024 * 1024
"""The bytes of one round. It is acknowledged before the next is read, so this bounds the memory."""


class Digest(NamedTuple):
    """Number and checksum of the rows of a task."""

    rows: int = 0
    crc: int = 0


class Records:
    """The records of a task's Arrow batches. `digest` covers those that were taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch], columns: Columns, topic: str) -> None:
        self._records = (each for batch in batches for each in records_of(batch, columns, topic))
        self.digest = Digest()

    def __iter__(self) -> Iterator[ProducerRecord]:
        rows, crc = self.digest
        for record in self._records:
            rows += 1
            crc = zlib.crc32(record.value or b"", zlib.crc32(record.key or b"", zlib.crc32(record.topic.encode(), crc)))
            self.digest = Digest(rows, crc)
            yield record

    def read_on(self) -> Digest:
        """Take the remaining records without writing them."""
        for _ in self:
            pass
        return self.digest


def write_all(client: BlockingClient, options: SinkOptions, records: Records, identity: Identity | None) -> None:
    """Write the records, and wait until all are acknowledged."""
    producer = client.call(_producer, options, identity)
    rounds = _rounds(iter(records))
    for some in rounds:
        client.call(_send, producer, some)


async def _producer(client: Client, options: SinkOptions, identity: Identity | None) -> Producer:
    settings: Any = options.producer_settings()
    is_idempotent = identity is None and settings["acks"] in ("all", -1)
    return Producer(client, idempotent=is_idempotent, identity=identity, **settings)


async def _send(_: Client, producer: Producer, records: list[ProducerRecord]) -> None:
    await producer.send_all(records)


def _rounds(records: Iterator[ProducerRecord]) -> Iterator[list[ProducerRecord]]:
    while some := list(islice(_up_to(records, ROUND_BYTES), ROUND_RECORDS)):
        yield some


def _up_to(records: Iterator[ProducerRecord], max_bytes: int) -> Iterator[ProducerRecord]:
    size = 0
    while size < max_bytes:
        record = next(records, None)
        if record is None:
            return
        size += len(record.value or b"") + len(record.key or b"")
        yield record
