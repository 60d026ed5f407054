"""Sinks, which write samples: to a topic (here), to files (`files`), or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from ottla.client import Client, Producer, ProducerRecord
from ottla.client.errors import ProduceError, ResponseError
from ottla.client.topics import NewTopic, create
from ottla.health.samples import Sample, encode, key_of
from ottla.wire.errors import ErrorCode

__all__ = ["NullSink", "Sink", "TopicSink", "UnwrittenError", "prepare_topic"]

CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}
"""Configs of a new topic: it keeps a week, and the samples' own timestamps."""
COPIES: Final = 3
DELIVERY_TIMEOUT_MS: Final = 20_000
TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class UnwrittenError(Exception):
    """Some samples could not be written; the caller tries them again."""

    def __init__(self, samples: Sequence[Sample], reason: Exception) -> None:
        super().__init__(str(reason))
        self.samples = list(samples)
        self.reason = reason


class Sink(Protocol):
    async def write(self, samples: Sequence[Sample]) -> None:
        """Raises UnwrittenError with the samples that were not written."""
        ...

    async def close(self) -> None: ...


class NullSink:
    """Drops samples, for callers that only use `on_sample`."""

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
    """Writes to a topic with an idempotent producer. If a response gets lost, a sample may be written twice, with the
    same number."""

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
    """Replace the body of the largest sample with an error, so that the sample itself is not lost."""
    largest = max(samples, key=lambda each: len(encode(each)))
    bare = msgspec.structs.replace(largest, body=None, error=ErrorCode.MESSAGE_TOO_LARGE.name)
    return [bare if each is largest else each for each in samples]
