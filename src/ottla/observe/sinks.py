"""Where samples go: into a topic, into files, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from ottla.client import Client, Producer, ProducerRecord
from ottla.client.errors import ProduceError, ResponseError
from ottla.client.topics import NewTopic, create
from ottla.health.samples import Sample, encode, key_of
from ottla.wire.errors import ErrorCode

__all__ = ["Nowhere", "Sink", "TopicSink", "UnwrittenError", "prepare_topic"]

CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}
"""Of a topic that did not exist: a week is kept, and the samples' own times."""
COPIES: Final = 3
DELIVERY_TIMEOUT_MS: Final = 20_000
TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class UnwrittenError(Exception):
    """Some samples could not be written and are to be tried again."""

    def __init__(self, samples: Sequence[Sample], reason: Exception) -> None:
        super().__init__(str(reason))
        self.samples = list(samples)
        self.reason = reason


class Sink(Protocol):
    async def write(self, samples: Sequence[Sample]) -> None:
        """UnwrittenError with those that were not written."""
        ...

    async def close(self) -> None: ...


class Nowhere:
    """For those who only want to know what is wrong now."""

    async def write(self, samples: Sequence[Sample]) -> None:
        return

    async def close(self) -> None:
        return


async def prepare_topic(client: Client, topic: str) -> bool:
    """Create the topic if there is none; whether it was created. ResponseError if that is not allowed."""
    if topic in await client.all_topics():
        return False
    copies = min(COPIES, max(1, len(client.metadata.brokers)))
    try:
        await create(client, NewTopic(topic, partitions=1, replication_factor=copies, configs=CONFIGS))
    except ResponseError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


class TopicSink:
    """Into a topic, by an idempotent producer. After an answer that got lost a sample may be there twice, with the same
    number."""

    def __init__(self, client: Client, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(client, compression="zstd", idempotent=True, delivery_timeout_ms=DELIVERY_TIMEOUT_MS)

    async def write(self, samples: Sequence[Sample]) -> None:
        records = [ProducerRecord(self._topic, encode(each), key_of(each), timestamp_ms=each.ts) for each in samples]
        try:
            await self._producer.send_all(records)
        except ProduceError as error:
            left = [each for each, place in zip(samples, error.delivered, strict=False) if place is None]
            raise UnwrittenError(_cut(left) if error.code in TOO_LARGE else left, error) from error

    async def close(self) -> None:
        return


def _cut(samples: list[Sample]) -> list[Sample]:
    """The largest one loses its body: that it was there is told all the same."""
    largest = max(samples, key=lambda each: len(encode(each)))
    bare = msgspec.structs.replace(largest, body=None, error=ErrorCode.MESSAGE_TOO_LARGE.name)
    return [bare if each is largest else each for each in samples]
