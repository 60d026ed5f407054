"""confluent-kafka (librdkafka), aiokafka and kafka-python without groups: write, seek, read, find by time."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # what other people's packages do is not our fault
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TIME_LIMIT_S = 40
COUNT = 50
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = time.time_ns() // 1_000_000 - 1_000_000  # not so old that retention takes them
TIMES = [BASE_MS + 1_000 * number for number in range(1, COUNT + 1)]
EXPECTED = [(number, when, f"value-{number}".encode()) for number, when in enumerate(TIMES)]
"""Offset, timestamp, value."""

WITHOUT_GROUP = {"group.id": "unused", "enable.auto.commit": False}
"""librdkafka wants a group's name; there is none as long as nothing is committed."""

Rows = list[tuple[int, int, bytes]]


@pytest.fixture
def topic(bootstrap_servers: str) -> str:
    return made(bootstrap_servers, 1)


def made(bootstrap_servers: str, partitions: int, **configs: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"python-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in configs.items()})
    admin.create_topics([new])[name].result(TIME_LIMIT_S)
    return name


def until(what: str, step: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not step():
        assert time.monotonic() < deadline, f"never came: {what}"


# --- librdkafka -------------------------------------------------------------------------------------------------------


def rdkafka_write(bootstrap_servers: str, topic: str, **settings: Any) -> list[str]:
    from confluent_kafka import Producer

    errors: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5, **settings})
    for _, when, value in EXPECTED:
        producer.produce(
            topic,
            value,
            key=b"key",
            partition=0,
            timestamp=when,
            headers=[("h", b"1")],
            on_delivery=lambda error, _: errors.append(str(error)) if error else None,
        )
    assert producer.flush(TIME_LIMIT_S) == 0
    return errors


def rdkafka_read(bootstrap_servers: str, topic: str, offset: int, count: int, **settings: Any) -> Rows:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, **WITHOUT_GROUP, **settings})
    consumer.assign([TopicPartition(topic, 0, offset)])
    read: Rows = []

    def step() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            read.append((message.offset(), message.timestamp()[1], message.value()))
        return len(read) >= count

    until(f"{count} records", step)
    consumer.close()
    return read


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_writes_and_reads_every_compression(bootstrap_servers: str, topic: str, codec: str):
    assert rdkafka_write(bootstrap_servers, topic, **{"compression.type": codec}) == []
    assert rdkafka_read(bootstrap_servers, topic, 0, COUNT) == EXPECTED


@pytest.mark.parametrize(("acks", "idempotent"), [("0", False), ("1", False), ("all", False), ("all", True)])
def test_librdkafka_with_all_kinds_of_acknowledgement(bootstrap_servers: str, topic: str, acks: str, idempotent: bool):
    settings = {"acks": acks, "enable.idempotence": idempotent}
    assert rdkafka_write(bootstrap_servers, topic, **settings) == []
    assert rdkafka_read(bootstrap_servers, topic, 0, COUNT) == EXPECTED


def test_librdkafka_finds_offsets(bootstrap_servers: str, topic: str):
    from confluent_kafka import Consumer, TopicPartition

    rdkafka_write(bootstrap_servers, topic)
    assert rdkafka_read(bootstrap_servers, topic, 40, 10) == EXPECTED[40:]
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, **WITHOUT_GROUP})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIME_LIMIT_S) == (0, COUNT)
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, BASE_MS + 2_500)], timeout=TIME_LIMIT_S)
    assert found.offset == 2
    assert topic in consumer.list_topics(timeout=TIME_LIMIT_S).topics
    consumer.close()


def test_librdkafka_administers(bootstrap_servers: str):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

    topic = made(bootstrap_servers, 2, segment_bytes="2000000")
    rdkafka_write(bootstrap_servers, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(TIME_LIMIT_S)
    until("four partitions", lambda: len(admin.list_topics(topic, TIME_LIMIT_S).topics[topic].partitions) == 4)
    partition = TopicPartition(topic, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), COUNT),
        (OffsetSpec.max_timestamp(), COUNT - 1),
        (OffsetSpec.for_timestamp(BASE_MS + 2_500), 2),
    ):
        assert admin.list_offsets({partition: spec})[partition].result(TIME_LIMIT_S).offset == offset
    low = admin.delete_records([TopicPartition(topic, 0, 10)])
    assert next(iter(low.values())).result(TIME_LIMIT_S).low_watermark == 10
    assert len(admin.describe_cluster().result(TIME_LIMIT_S).nodes) == 1
    admin.delete_topics([topic])[topic].result(TIME_LIMIT_S)
    until("the topic is gone", lambda: topic not in admin.list_topics(timeout=TIME_LIMIT_S).topics)


def test_librdkafka_reads_from_the_start_when_its_position_is_gone(bootstrap_servers: str, topic: str):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    rdkafka_write(bootstrap_servers, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    next(iter(admin.delete_records([TopicPartition(topic, 0, 45)]).values())).result(TIME_LIMIT_S)
    read = rdkafka_read(bootstrap_servers, topic, 3, 5, **{"auto.offset.reset": "earliest"})
    assert read == EXPECTED[45:]


def test_librdkafka_large_records(bootstrap_servers: str):
    from confluent_kafka import Producer

    topic = made(bootstrap_servers, 1, max_message_bytes="10000000")
    large = bytes(range(256)) * 20_000
    producer = Producer({"bootstrap.servers": bootstrap_servers, "message.max.bytes": 10_000_000})
    producer.produce(topic, large)
    assert producer.flush(TIME_LIMIT_S) == 0
    settings = {"fetch.message.max.bytes": 1_000, "fetch.max.bytes": 10_000_000}
    assert rdkafka_read(bootstrap_servers, topic, 0, 1, **settings)[0][2] == large


def test_librdkafka_is_told_that_a_record_is_too_large(bootstrap_servers: str):
    from confluent_kafka import Producer

    topic = made(bootstrap_servers, 1, max_message_bytes="1000")
    errors: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, bytes(2_000), on_delivery=lambda error, _: errors.append(error.name()))
    assert producer.flush(TIME_LIMIT_S) == 0
    assert errors == ["MSG_SIZE_TOO_LARGE"]


def test_librdkafka_need_not_wait_to_close(bootstrap_servers: str, topic: str) -> None:
    """It looks for the coordinator of its group even if it has no use for it, and would wait 45 s for one."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, **WITHOUT_GROUP})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.poll(0.1)
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 10


# --- kafka-python -----------------------------------------------------------------------------------------------------


def kafka_python_write(bootstrap_servers: str, topic: str, **settings: Any) -> list[int]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, **settings)
    sent = [producer.send(topic, value, b"key", partition=0, timestamp_ms=when) for _, when, value in EXPECTED]
    producer.flush(TIME_LIMIT_S)
    offsets = [one.get(TIME_LIMIT_S).offset for one in sent]
    producer.close()
    return offsets


def kafka_python_read(bootstrap_servers: str, topic: str, offset: int) -> Rows:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, consumer_timeout_ms=TIME_LIMIT_S * 1000)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    read: Rows = []
    for record in consumer:
        read.append((record.offset, record.timestamp, record.value))
        if len(read) >= COUNT - offset:
            break
    consumer.close()
    return read


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_kafka_python_writes_and_reads_every_compression(bootstrap_servers: str, topic: str, codec: str):
    from kafka import codec as codecs

    if codec != "none" and not getattr(codecs, f"has_{codec}")():
        pytest.skip(f"kafka-python has no {codec} here")
    assert kafka_python_write(bootstrap_servers, topic, compression_type=None if codec == "none" else codec) == [
        *range(COUNT)
    ]
    assert kafka_python_read(bootstrap_servers, topic, 0) == EXPECTED
    assert kafka_python_read(bootstrap_servers, topic, 45) == EXPECTED[45:]


@pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}])
def test_kafka_python_with_all_kinds_of_acknowledgement(bootstrap_servers: str, topic: str, settings: dict[str, Any]):
    if "enable_idempotence" not in settings:
        settings = {**settings, "enable_idempotence": False}
    assert kafka_python_write(bootstrap_servers, topic, **settings) == [*range(COUNT)]
    assert kafka_python_read(bootstrap_servers, topic, 0) == EXPECTED


def test_kafka_python_finds_offsets(bootstrap_servers: str, topic: str):
    from kafka import KafkaConsumer, TopicPartition

    kafka_python_write(bootstrap_servers, topic)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers)
    partition = TopicPartition(topic, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: COUNT}
    found = consumer.offsets_for_times({partition: BASE_MS + 2_500})[partition]
    assert (found.offset, found.timestamp) == (2, BASE_MS + 3_000)
    assert consumer.offsets_for_times({partition: BASE_MS + 99_999_999})[partition] is None
    assert consumer.partitions_for_topic(topic) == {0}
    assert topic in consumer.topics()
    consumer.close()


# --- aiokafka ---------------------------------------------------------------------------------------------------------


async def aiokafka_round(bootstrap_servers: str, topic: str, offset: int, **settings: Any) -> Rows:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async with asyncio.timeout(TIME_LIMIT_S):
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=5, **settings) as producer:
            sent = [await producer.send(topic, value, partition=0, timestamp_ms=when) for _, when, value in EXPECTED]
            await asyncio.gather(*sent)
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers)
        await consumer.start()
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            read = [await consumer.getone() for _ in range(COUNT - offset)]
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: COUNT}
            found = (await consumer.offsets_for_times({partition: BASE_MS + 2_500}))[partition]
            assert (found.offset, found.timestamp) == (2, BASE_MS + 3_000)
        finally:
            await consumer.stop()
    return [(one.offset, one.timestamp, one.value) for one in read]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"acks": 0},
        {"acks": 1},
        {"acks": "all"},
        {"enable_idempotence": True},
        {"compression_type": "gzip"},
        {"compression_type": "lz4"},
        {"compression_type": "snappy"},
        {"compression_type": "zstd"},
    ],
    ids=str,
)
def test_aiokafka(bootstrap_servers: str, topic: str, settings: dict[str, Any]):
    assert asyncio.run(aiokafka_round(bootstrap_servers, topic, 0, **settings)) == EXPECTED


def test_aiokafka_seeks(bootstrap_servers: str, topic: str):
    assert asyncio.run(aiokafka_round(bootstrap_servers, topic, 45)) == EXPECTED[45:]
