"""The rounds of a copy: read, choose, write, save."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.client.client import Client
from ottla.client.fetcher import ConsumerRecord, Fetched, Fetcher
from ottla.client.metadata import TopicPartition
from ottla.client.producer import ProducerRecord

ROUND_BYTES_MAX: Final = 8 * 1024 * 1024
"""How much one leader sends for a round."""

Filter = Callable[[ConsumerRecord], bool]


class Copied(NamedTuple):
    """How far a copy is."""

    copied: int = 0
    size_bytes: int = 0
    """Keys and values that were written."""
    skipped: int = 0
    """Records that the filter left out, or that nothing can be made of."""
    positions: Mapping[TopicPartition, int] = {}
    """The next record of each partition."""


class Records(Protocol):
    """What is written for the records that were read; fewer if nothing can be made of some."""

    async def of(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]: ...


class Writer(Protocol):
    """Writes records, and saves how far the copy is."""

    async def write(self, records: Sequence[ProducerRecord], positions: Mapping[TopicPartition, int]) -> None: ...


class Chosen(NamedTuple):
    """What a round takes of one partition."""

    records: list[ConsumerRecord]
    skipped: int
    next_position: int


class SameRecords:
    """Records with the same key, value, headers and timestamp, in another topic.

    They keep their partition, or get the one of their key.
    """

    def __init__(self, topic: str, *, by_key: bool = False) -> None:
        self._topic = topic
        self._by_key = by_key

    async def of(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        return [copy_of(each, self._topic, None if self._by_key else each.partition) for each in records]


class TopicCopy:
    """A copy of some partitions, from `starts` up to `ends`, or without an end."""

    def __init__(
        self,
        client: Client,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int] | None,
        records: Records,
        writer: Writer,
        *,
        matches: Filter | None = None,
        most: int | None = None,
    ) -> None:
        """`matches` chooses records; no more than `most` of them are copied."""
        self._client = client
        self._starts = starts
        self._ends = ends
        self._records = records
        self._writer = writer
        self._matches = matches
        self._most = most

    async def rounds(self) -> AsyncIterator[Copied]:
        """How far the copy is, after each round. Records of open and aborted transactions are not copied."""
        state = Copied(positions=self._starts)
        starts = {at: start for at, start in self._starts.items() if not self._is_done(at, start)}
        fetcher = Fetcher(self._client, starts, isolation="read_committed", max_bytes=ROUND_BYTES_MAX)
        async with fetcher:
            while starts and self._most != state.copied:
                fetched = await fetcher.poll()
                if not fetched:
                    continue
                state = await self._round(fetched, state)
                yield state
                for each in fetched:
                    if state.positions[each.at] < each.next_position:  # nothing was made of some that `most` counted
                        fetcher.seek(each.at, state.positions[each.at])
                for at in [at for at in starts if self._is_done(at, state.positions[at])]:
                    fetcher.drop(at)
                    del starts[at]

    async def _round(self, fetched: Sequence[Fetched], state: Copied) -> Copied:
        left = None if self._most is None else self._most - state.copied
        positions = dict(state.positions)
        records: list[ConsumerRecord] = []
        skipped = state.skipped
        for each in fetched:
            end = None if self._ends is None else self._ends[each.at]
            chosen = choose(each, end, self._matches, None if left is None else left - len(records))
            records += chosen.records
            skipped += chosen.skipped
            positions[each.at] = chosen.next_position
        written = await self._records.of(records)
        await self._writer.write(written, positions)
        return Copied(
            state.copied + len(written),
            state.size_bytes + sum(len(each.key or b"") + len(each.value or b"") for each in written),
            skipped + len(records) - len(written),
            positions,
        )

    def _is_done(self, at: TopicPartition, position: int) -> bool:
        return self._ends is not None and position >= self._ends[at]


def choose(fetched: Fetched, end: int | None, matches: Filter | None, most: int | None) -> Chosen:
    """The first `most` records before `end` that match, and where to go on behind them."""
    records: list[ConsumerRecord] = []
    skipped = 0
    position = fetched.position
    for record in fetched.records():
        if len(records) == most or (end is not None and record.offset >= end):
            return Chosen(records, skipped, position)
        position = record.offset + 1
        if matches is None or matches(record):
            records.append(record)
        else:
            skipped += 1
    if len(records) == most:
        return Chosen(records, skipped, position)
    return Chosen(records, skipped, fetched.next_position if end is None else min(fetched.next_position, end))


def copy_of(record: ConsumerRecord, topic: str, partition: int | None) -> ProducerRecord:
    timestamp_ms = None if record.timestamp_ms < 0 else record.timestamp_ms
    return ProducerRecord(topic, record.value, record.key, record.headers, partition, timestamp_ms)
