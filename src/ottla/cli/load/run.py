"""Writes records to a topic at a rate, reads them again if that is wanted, and measures how long both take.

The latency of a write begins when its record is due, not when it is sent: if the cluster stalls, records that could not
be sent in the meantime count as late, too. Without a rate a record is due when it is sent. A record's value begins with
the time when it was due, by which a reader of the same run knows how old it is.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ottla.cli.latencies import Latencies
from ottla.cli.load.pace import Due, Pace

if TYPE_CHECKING:
    from ottla.client import Client, ProducerRecord, TopicPartition
    from ottla.client.errors import ClientError

STAMP: Final = Struct(">d16s")
"""When the record was due, and the run it belongs to."""
SECOND_NS: Final = 1_000_000_000
READ_PATIENCE_S: Final = 10.0
"""How long the reader may take after the last write."""


class LoadOptions(NamedTuple):
    topic: str
    rate: float | None
    records: int | None
    seconds: float | None
    size_bytes: int
    keys: int
    acks: int | Literal["all"]
    compression: str
    batch_bytes: int
    linger_s: float
    in_flight: int
    reads: bool


class Second(NamedTuple):
    """What one second of a run brought."""

    writes: Latencies
    reads: Latencies


class Measured:
    """The latencies of a run, second by second."""

    def __init__(self) -> None:
        self.seconds: list[Second] = []
        self.written = 0
        self.failed = 0
        self.failure: ClientError | None = None
        self.written_s = 0.0
        """When the last write was acknowledged."""
        self.read_s = 0.0
        """When the last record was read."""

    def second(self, passed_s: float) -> Second:
        while len(self.seconds) <= int(passed_s):
            self.seconds.append(Second(Latencies(), Latencies()))
        return self.seconds[int(passed_s)]

    @property
    def writes(self) -> Latencies:
        return _sum([each.writes for each in self.seconds])

    @property
    def reads(self) -> Latencies:
        return _sum([each.reads for each in self.seconds])


def _sum(all_latencies: list[Latencies]) -> Latencies:
    total = Latencies()
    for each in all_latencies:
        total.merge(each)
    return total


class Load:
    """One run."""

    def __init__(self, client: Client, options: LoadOptions, say: Callable[[Measured, float], None]) -> None:
        """`say` is told how far it is, after each batch."""
        from ottla.wire.batch import HEADER_BYTES
        from ottla.wire.batch_record import RECORD_OVERHEAD_MAX

        self._client = client
        self._options = options
        self._say = say
        self._run_id = os.urandom(16)
        self._filling = os.urandom(max(0, options.size_bytes - STAMP.size))
        overhead = RECORD_OVERHEAD_MAX + len(str(options.keys))
        batch_max = max(1, (options.batch_bytes - HEADER_BYTES) // (options.size_bytes + overhead))
        self._pace = Pace(options.rate, total=options.records, seconds=options.seconds, batch_max=batch_max)
        self._began_s = 0.0
        self._is_written = False
        self.measured = Measured()

    async def run(self) -> Measured:
        starts = await self._ends() if self._options.reads else {}
        self._began_s = time.monotonic()
        reader = asyncio.create_task(self._read(starts)) if self._options.reads else None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._options.in_flight):
                    group.create_task(self._write())
            self._is_written = True
            if reader is not None:
                await asyncio.wait([reader], timeout=READ_PATIENCE_S)
        finally:
            if reader is not None:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
        return self.measured

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        from ottla.client import ClientError, Producer

        options = self._options
        producer = Producer(
            self._client, acks=options.acks, compression=options.compression, batch_bytes=options.batch_bytes
        )
        while True:
            if self._pace.is_over(self._passed_s):
                return
            wait_s = self._pace.wait_s(self._passed_s, options.linger_s)
            if wait_s:
                await asyncio.sleep(wait_s)
                continue  # another task may have taken the records meanwhile
            sent_s = self._passed_s
            due = self._pace.take(sent_s)
            times = [self._pace.due_at_s(due.first + index) for index in range(due.size)]
            if not self._pace.has_rate:
                times = [sent_s] * due.size
            try:
                await producer.send_all(self._records(due, times))
            except ClientError as error:
                self.measured.failed += due.size
                self.measured.failure = error
                continue
            self._note_written(times)

    def _records(self, due: Due, times: list[float]) -> list[ProducerRecord]:
        from ottla.client import ProducerRecord

        options = self._options
        return [
            ProducerRecord(
                options.topic,
                self._value(due_s),
                b"%d" % ((due.first + index) % options.keys) if options.keys else None,
            )
            for index, due_s in enumerate(times)
        ]

    def _value(self, due_s: float) -> bytes:
        if self._options.size_bytes < STAMP.size:
            return self._run_id[: self._options.size_bytes]
        return STAMP.pack(due_s, self._run_id) + self._filling

    def _note_written(self, times: list[float]) -> None:
        now_s = self._passed_s
        writes = self.measured.second(now_s).writes
        for due_s in times:
            writes.add(round((now_s - due_s) * SECOND_NS))
        self.measured.written += len(times)
        self.measured.written_s = now_s
        self._say(self.measured, now_s)

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._began_s

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _ends(self) -> dict[TopicPartition, int]:
        from ottla.client import LATEST, TopicPartition, list_offsets

        topics = await self._client.topics([self._options.topic])
        partitions = [TopicPartition(self._options.topic, each) for each in topics[self._options.topic].partitions]
        listed = await list_offsets(self._client, dict.fromkeys(partitions, LATEST))
        return {at: each.offset for at, each in listed.items()}

    async def _read(self, starts: dict[TopicPartition, int]) -> None:
        """Read until everything that was written has been read."""
        from ottla.client import Fetcher

        count = 0
        async with Fetcher(self._client, starts, max_wait_ms=100) as fetcher:
            while not (self._is_written and count >= self.measured.written):
                for fetched in await fetcher.poll():
                    now_s = self._passed_s
                    reads = self.measured.second(now_s).reads
                    for record in fetched.records():
                        due_s = self._due_s(record.value)
                        if due_s is not None:
                            reads.add(max(0, round((now_s - due_s) * SECOND_NS)))
                            self.measured.read_s = now_s
                            count += 1

    def _due_s(self, value: bytes | None) -> float | None:
        """When a record of this run was due; None for others."""
        if value is None or len(value) < STAMP.size:
            return None
        due_s, run_id = STAMP.unpack_from(value)
        return float(due_s) if run_id == self._run_id else None
