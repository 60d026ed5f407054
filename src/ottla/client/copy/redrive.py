"""Dead letters become the records they stand for.

The headers of a dead letter (KIP-1191) say which record of which partition was given up. That record is read again,
with its own headers and timestamp. If it is gone, the copy in the letter takes its place, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.client import Client
from ottla.client.copy.rounds import copy_of
from ottla.client.fetcher import ConsumerRecord, Fetcher
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer import ProducerRecord
from ottla.wire.dead_letter import HEADER_PREFIX


class Origin(NamedTuple):
    """The record that a dead letter stands for."""

    at: TopicPartition
    offset: int


class OriginalRecords:
    """The records behind dead letters, for their own topics or for one other topic."""

    def __init__(self, client: Client, topic: str | None = None, *, by_key: bool = False) -> None:
        self._client = client
        self._topic = topic
        self._by_key = by_key

    async def of(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        origins = {(letter.partition, letter.offset): origin_of(letter) for letter in records}
        topics = {each.at.topic for each in origins.values() if each is not None}
        known = await self._client.topics(topics.difference(await self._client.unknown_topics(topics)))
        there = {TopicPartition(name, each) for name, topic in known.items() for each in topic.partitions}
        originals = await self._read({each for each in origins.values() if each is not None and each.at in there})
        written = []
        for letter in records:
            origin = origins[letter.partition, letter.offset]
            if origin is None or (self._topic is None and origin.at not in there):
                continue
            record = originals.get(origin) or content_of(letter)
            if record is not None:
                partition = None if self._by_key else origin.at.partition
                written.append(copy_of(record, self._topic or origin.at.topic, partition))
        return written

    async def _read(self, wanted: Iterable[Origin]) -> dict[Origin, ConsumerRecord]:
        offsets: dict[TopicPartition, list[int]] = {}
        for origin in sorted(wanted):
            offsets.setdefault(origin.at, []).append(origin.offset)
        starts = await list_offsets(self._client, dict.fromkeys(offsets, EARLIEST))
        ends = await list_offsets(self._client, dict.fromkeys(offsets, LATEST))
        there = {
            at: [each for each in some if starts[at].offset <= each < ends[at].offset] for at, some in offsets.items()
        }
        return await self._read_offsets({at: some for at, some in there.items() if some})

    async def _read_offsets(self, offsets: Mapping[TopicPartition, list[int]]) -> dict[Origin, ConsumerRecord]:
        """Records at ascending offsets that are within their logs; what lies between them is not read."""
        left = {at: list(reversed(some)) for at, some in offsets.items()}
        found: dict[Origin, ConsumerRecord] = {}
        async with Fetcher(self._client, {at: some[-1] for at, some in left.items()}) as fetcher:
            while left:
                for fetched in await fetcher.poll():
                    at, some = fetched.at, left[fetched.at]
                    records = {record.offset: record for record in fetched.records()}
                    while some and some[-1] < fetched.next_position:
                        offset = some.pop()
                        if offset in records:
                            found[Origin(at, offset)] = records[offset]
                    if some:
                        fetcher.seek(at, some[-1])
                    else:
                        fetcher.drop(at)
                        del left[at]
        return found


def origin_of(letter: ConsumerRecord) -> Origin | None:
    """None if the headers do not say it."""
    headers = {
        name.removeprefix(HEADER_PREFIX): value for name, value in letter.headers if name.startswith(HEADER_PREFIX)
    }
    try:
        topic, partition, offset = (bytes(headers[name] or b"").decode() for name in ("topic", "partition", "offset"))
        return Origin(TopicPartition(topic, int(partition)), int(offset)) if topic else None
    except (KeyError, ValueError):
        return None


def content_of(letter: ConsumerRecord) -> ConsumerRecord | None:
    """The copy that a letter has of its record, without the letter's own headers; None if it has none."""
    if letter.key is None and letter.value is None:
        return None
    return letter._replace(headers=[each for each in letter.headers if not each[0].startswith(HEADER_PREFIX)])
