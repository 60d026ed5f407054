"""Topics full of records, made quickly: a few batches of random values are sent again and again."""

import random
import time
from itertools import cycle, islice

from ottla.client import topics
from ottla.client.backoff import Deadline
from ottla.client.blocking import BlockingClient
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import LATEST, list_offsets
from ottla.client.versions import choose_version
from ottla.wire.batch import Compression, Record, build_batch
from ottla.wire.types.produce import ProduceRequest, ProduceResponse

BATCH_BYTES = 64 * 1024
KINDS = 16
AHEAD = 5
TIMEOUT_MS = 30_000


def fill(bootstrap_servers: str, topic: str, *, records: int, value_bytes: int, partitions: int, codec: str) -> None:
    """Make a topic and fill its partitions with equal shares."""
    settings = {"message.timestamp.type": "CreateTime"}
    with BlockingClient(bootstrap_servers) as client:
        client.call(topics.create, topics.NewTopic(topic, partitions=partitions, configs=settings))
        # Asked until all of them have a leader that knows of it: requests that are sent ahead are not sent again.
        client.call(list_offsets, {(topic, partition): LATEST for partition in range(partitions)})
        for partition in range(partitions):
            _fill_partition(client, TopicPartition(topic, partition), records // partitions, value_bytes, codec)


def values(count: int, value_bytes: int, seed: int) -> list[bytes]:
    """Half of each value is random text, half of it is the same in all: they compress about as logs and JSON do."""
    numbers = random.Random(seed)
    fixed = b'{"kind":"order","currency":"EUR","status":"'.ljust(value_bytes // 2, b"-")[: value_bytes // 2]
    rest = value_bytes - len(fixed)
    return [fixed + numbers.randbytes(rest // 2 + 1).hex().encode()[:rest] for _ in range(count)]


def values_of_batches(value_bytes: int) -> list[list[bytes]]:
    """The values of the different batches of a topic."""
    count = max(1, BATCH_BYTES // (value_bytes + 10))
    return [values(count, value_bytes, kind) for kind in range(KINDS)]


def batches(value_bytes: int, codec: str) -> tuple[list[bytes], int]:
    """Some different batches, and how many records each of them has."""
    contents = values_of_batches(value_bytes)
    now_ms = round(time.time() * 1000)
    compression = Compression[codec.upper()]
    made = [
        build_batch(
            [Record(i, now_ms + i, b"%d" % i, value) for i, value in enumerate(content)], compression=compression
        )
        for content in contents
    ]
    return made, len(contents[0])


def _fill_partition(client: BlockingClient, at: TopicPartition, records: int, value_bytes: int, codec: str) -> None:
    made, count = batches(value_bytes, codec)
    connection = client.borrow(client.leader(at, Deadline(TIMEOUT_MS)).peer)
    version = choose_version("Produce", connection.versions, connection.peer)
    topic_id = client.metadata.topics[at.topic].topic_id
    for batch in islice(cycle(made), -(-records // count)):
        part = ProduceRequest.PartitionProduceData(at.partition, batch)
        topic = ProduceRequest.TopicProduceData(at.topic, topic_id, (part,))
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=(topic,))
        connection.send(request, version)
        if connection.in_flight >= AHEAD:
            _check(connection.receive())
    while connection.in_flight:
        _check(connection.receive())
    client.give_back(connection)


def _check(answer: object) -> None:
    assert isinstance(answer, ProduceResponse)
    codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
    assert codes == [0], f"Produce: error codes {codes}"
