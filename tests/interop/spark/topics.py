"""Topics for the tests: made, filled batch by batch, grown, cut and deleted."""

import uuid
from collections.abc import Sequence
from typing import Any

from ottla.client import TopicPartition, delete_records, topics
from ottla.client.blocking import BlockingClient
from ottla.client.client import always
from ottla.client.topics import NewTopic
from ottla.wire.batch import Record, build_batch
from ottla.wire.types.produce import ProduceRequest, ProduceResponse

TIME_MS = 1_700_000_000_000


def new_name(text: str = "t") -> str:
    return f"{text}-{uuid.uuid4().hex[:8]}"


class Topics:
    """What tests do to a cluster."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.client = BlockingClient(bootstrap_servers).__enter__()

    def close(self) -> None:
        self.client.close()

    def create(self, name: str | None = None, *, partitions: int = 1, **configs: object) -> str:
        made = name or new_name()
        kept = {"retention_ms": -1}  # whatever their timestamps say
        settings = {key.replace("_", "."): str(value) for key, value in {**kept, **configs}.items()}
        self.client.call(topics.create, NewTopic(made, partitions=partitions, configs=settings))
        return made

    def delete(self, name: str) -> None:
        self.client.call(topics.delete, name)

    def grow(self, name: str, partitions: int) -> None:
        self.client.call(topics.add_partitions, name, partitions)

    def cut(self, name: str, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        self.client.call(delete_records, {(name, partition): before})

    def put(self, name: str, partition: int, *batches: bytes) -> None:
        """Append batches as they are, in requests of their own."""
        for batch in batches:
            self._produce(name, partition, batch)

    def fill(self, name: str, partition: int, count: int, *, first: int = 0, **options: Any) -> None:
        """So many small records, in one batch."""
        self.put(name, partition, numbered(count, first=first, **options))

    def _produce(self, name: str, partition: int, batch: bytes) -> None:
        topic_id = self.client.call(_topic_id, name)
        part = ProduceRequest.PartitionProduceData(partition, batch)
        topic = ProduceRequest.TopicProduceData(name, topic_id, (part,))
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(topic,))
        answer = self.client.ask("Produce", always(request), partition=TopicPartition(name, partition))
        (said,) = answer.of(ProduceResponse).responses[0].partition_responses
        assert said.error_code == 0, said


async def _topic_id(client: Any, name: str) -> bytes:
    found = await client.topics([name])
    return bytes(found[name].topic_id)


def batch(records: Sequence[tuple[Any, ...]], **options: Any) -> bytes:
    """A batch of (key, value, timestamp, headers), the last two if wanted."""
    made = []
    for index, (key, value, *more) in enumerate(records):
        timestamp = more[0] if more else TIME_MS + index
        made.append(Record(index, timestamp, key, value, tuple(more[1]) if len(more) > 1 else ()))
    return build_batch(made, **options)


def numbered(count: int, *, first: int = 0, time_ms: int = TIME_MS, size: int = 0, **options: Any) -> bytes:
    """Records whose values are numbers, a second apart."""
    rows = [
        (b"k%d" % number, (b"v%d" % number).ljust(size, b"."), time_ms + number * 1000)
        for number in range(first, first + count)
    ]
    return batch(rows, **options)
