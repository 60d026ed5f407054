"""Reads records for the browser: without a group, through a filter, and never further than its bounds.

The partitions of one answer are merged by time, so that the first records come from all of them. A scan says what
stopped it, and from where it would go on.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client import EARLIEST, Client, ConsumerRecord, Fetcher, TopicPartition
from ottla.client.committed import visible
from ottla.client.fetcher import Fetched
from ottla.client.filters import Filter
from ottla.client.offsets import Isolation
from ottla.client.record_text import filter_row
from ottla.wire import WireError
from ottla.wire.batch import AnyBatch, BatchView, ControlRecordType, Record, read_control_type, split_batches

__all__ = ["BOUNDS", "Bounds", "Scan", "SeenRecord", "control_name", "scan", "seen_record"]

ANSWER_MAX_BYTES: Final = 16 << 20
PARTITION_MAX_BYTES: Final = 1 << 20
PARTITION_MIN_BYTES: Final = 64 << 10
PAUSE_RECORDS: Final = 500
"""After so many records others may run."""


class Bounds(NamedTuple):
    matches: int = 200
    records: int = 500_000
    bytes: int = 256 << 20
    seconds: float = 20


BOUNDS: Final = Bounds()


class SeenRecord(NamedTuple):
    """A record, and what its batch says of it."""

    record: ConsumerRecord
    producer_id: int | None = None
    is_transactional: bool = False
    control: str | None = None
    """What a record says that a broker has written between the data: COMMIT, ABORT."""


class Scan(NamedTuple):
    found: list[SeenRecord]
    scanned: int
    bytes: int
    stopped: str
    """What ended it: end, limit, records, bytes or time."""
    rest: dict[int, int]
    """The partitions that were not read to their end, and where each would go on."""
    damaged: list[str]
    took_ms: int


async def scan(
    client: Client,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    matches: Filter | None = None,
    is_committed: bool = False,
    bounds: Bounds = BOUNDS,
) -> Scan:
    """Read from offsets up to others. What brokers wrote between the data is seen, too, unless `is_committed`."""
    scanner = Scanner(starts, ends, matches, bounds, is_committed=is_committed)
    isolation: Isolation = "read_committed" if is_committed else "read_uncommitted"
    share = max(PARTITION_MIN_BYTES, min(PARTITION_MAX_BYTES, ANSWER_MAX_BYTES // max(1, len(starts))))
    async with Fetcher(
        client,
        scanner.rest,
        isolation=isolation,
        max_bytes=ANSWER_MAX_BYTES,
        partition_max_bytes=share,
        on_out_of_range=EARLIEST,
    ) as fetcher:
        while scanner.may_go_on():
            for _ in scanner.take(await fetcher.poll()):
                await asyncio.sleep(0)
            for at in [each for each in fetcher.positions if each not in scanner.rest]:
                fetcher.drop(at)
    return scanner.result()


class Scanner:
    """Takes what was fetched and counts; it does no input or output."""

    def __init__(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        matches: Filter | None,
        bounds: Bounds,
        *,
        is_committed: bool,
    ) -> None:
        self._positions = dict(starts)
        self._ends = ends
        self._matches = matches
        self._bounds = bounds
        self._is_committed = is_committed
        self._begun_s = time.monotonic()
        self._found: list[SeenRecord] = []
        self._damaged: list[str] = []
        self._scanned = self._bytes = 0
        self._stopped: str | None = None

    @property
    def rest(self) -> dict[TopicPartition, int]:
        """The partitions that are not read to their end."""
        return {at: position for at, position in self._positions.items() if position < self._ends[at]}

    def may_go_on(self) -> bool:
        self._check_time()
        return self._stopped is None and bool(self.rest)

    def take(self, fetched: list[Fetched]) -> Iterator[None]:
        """Look at records; stops now and then, so that others may run."""
        wanted = [each for each in fetched if each.at in self._ends]
        self._bytes += sum(len(each.data) for each in wanted)
        for seen in heapq.merge(*map(self._records, wanted), key=_time):
            self._look_at(seen)
            if self._scanned % PAUSE_RECORDS == 0:
                self._check_time()
                yield
            if self._stopped is not None:
                return
        if self._bytes >= self._bounds.bytes:
            self._stopped = "bytes"

    def _check_time(self) -> None:
        if self._stopped is None and time.monotonic() - self._begun_s >= self._bounds.seconds:
            self._stopped = "time"

    def _look_at(self, seen: SeenRecord) -> None:
        record = seen.record
        self._scanned += 1
        self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
        if self._matches is None or self._matches(filter_row(record)):
            self._found.append(seen)
        if len(self._found) >= self._bounds.matches:
            self._stopped = "limit"
        elif self._scanned >= self._bounds.records:
            self._stopped = "records"

    def _records(self, fetched: Fetched) -> Iterator[SeenRecord]:
        """The records of one partition in this answer, up to the end of the scan."""
        batches = split_batches(fetched.data)
        end = self._ends[fetched.at]
        for batch in visible(batches, fetched.aborted) if self._is_committed else batches:
            for each in self._opened(fetched.at, batch):
                if fetched.position <= each.offset < end:
                    yield seen_record(fetched.at, batch, each)
        self._positions[fetched.at] = fetched.next_position

    def _opened(self, at: TopicPartition, batch: AnyBatch) -> list[Record]:
        try:
            batch.check_crc()
            return batch.records()
        except WireError as error:
            self._damaged.append(f"{at}, batch up to offset {batch.last_offset:,}: {error}")
            return []

    def result(self) -> Scan:
        rest = {at.partition: position for at, position in sorted(self.rest.items())}
        took_ms = round(1000 * (time.monotonic() - self._begun_s))
        stopped = "end" if not rest else self._stopped or "end"
        return Scan(self._found, self._scanned, self._bytes, stopped, rest, self._damaged, took_ms)


def _time(seen: SeenRecord) -> int:
    return seen.record.timestamp_ms


def seen_record(at: TopicPartition, batch: AnyBatch, record: Record) -> SeenRecord:
    whole = ConsumerRecord(
        *at,
        record.offset,
        record.timestamp,
        batch.timestamp_type,
        None if record.key is None else bytes(record.key),
        None if record.value is None else bytes(record.value),
        record.headers,
        batch.partition_leader_epoch if isinstance(batch, BatchView) else -1,
    )
    if not isinstance(batch, BatchView):
        return SeenRecord(whole)
    producer_id = batch.producer_id if batch.has_producer_id else None
    control = control_name(record) if batch.is_control else None
    return SeenRecord(whole, producer_id, batch.is_transactional, control)


def control_name(record: Record) -> str:
    try:
        return ControlRecordType(read_control_type(record.key)).name
    except ValueError:  # damaged, or of a type that is newer than our table
        return ControlRecordType.UNKNOWN.name
