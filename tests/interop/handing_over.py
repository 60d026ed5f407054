"""A cluster that changes brokers, and what was written to it."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.component.when_ready import watermarks
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = {"orders": 3, "pay.ments": 1, "with_underscore": 2}
CONFIGS = {"retention.ms": "123456789", "segment.bytes": "1048576", "cleanup.policy": "delete"}
RECORDS_PER_COMPRESSION = 50
TIME_LIMIT_S = 60
Node = ApacheKafka | OttlaServe


class Placed(NamedTuple):
    """A record where the broker said that it is."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Ledger:
    """What was acknowledged, made by whichever broker, and whether another serves it."""

    def __init__(self, replicas: int = 1) -> None:
        self.placed: list[Placed] = []
        self._replicas = replicas
        self.topic_ids: dict[str, str] = {}
        self._round = 0

    def create_topics(self, servers: str) -> None:
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(name, count, self._replicas, config=CONFIGS) for name, count in TOPICS.items()]
        for future in admin.create_topics(topics).values():
            future.result(TIME_LIMIT_S)
        self.topic_ids = topic_ids(servers)

    def produce(self, servers: str) -> None:
        """Records in every compression to every partition."""
        self._round += 1
        for compression in COMPRESSIONS:
            producer = Producer(
                {
                    "bootstrap.servers": servers,
                    "compression.type": compression,
                    "enable.idempotence": True,
                    "linger.ms": 20,
                }
            )
            for number in range(RECORDS_PER_COMPRESSION):
                for topic, partition in partitions():
                    self._send(producer, topic, partition, f"{compression} {self._round}.{number} ".encode() * 20)
            assert producer.flush(TIME_LIMIT_S) == 0

    def _send(self, producer: Producer, topic: str, partition: int, value: bytes) -> None:
        key, headers = value[:8], [("round", str(self._round).encode())]

        def acknowledged(error: Any, message: Any) -> None:
            assert error is None, error
            self.placed.append(Placed(topic, partition, message.offset(), key, value, tuple(headers)))

        producer.produce(topic, value, key, partition, on_delivery=acknowledged, headers=headers)
        producer.poll(0)

    def check(self, servers: str) -> None:
        """Everything is there, and nothing else; ids and settings are the same."""
        assert topic_ids(servers) == self.topic_ids
        for topic in TOPICS:
            found = topic_configs(servers, topic)
            assert {name: found[name] for name in CONFIGS} == CONFIGS
        assert sorted(read_all(servers)) == sorted(self.placed)


def partitions() -> list[tuple[str, int]]:
    return [(topic, partition) for topic, count in TOPICS.items() for partition in range(count)]


def topic_ids(servers: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": servers})
    found = admin.describe_topics(TopicCollection(list(TOPICS)))
    return {name: str(future.result(TIME_LIMIT_S).topic_id) for name, future in found.items()}


def topic_configs(servers: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": servers})
    [future] = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(TIME_LIMIT_S).items()}


def read_all(servers: str) -> list[Placed]:
    """All records of all partitions, from the start to the high watermark."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False})
    ends: dict[tuple[str, int], int] = {}
    for topic, partition in partitions():
        low, high = watermarks(consumer, topic, partition)
        assert low == 0
        ends[topic, partition] = high
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ends])
    records: list[Placed] = []
    next_offsets: dict[tuple[str, int], int] = defaultdict(int)
    deadline = time.monotonic() + TIME_LIMIT_S
    while any(next_offsets[key] < end for key, end in ends.items()) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        assert message.error() is None, message.error()
        headers = tuple(message.headers() or ())
        where = (message.topic(), message.partition())
        records.append(Placed(*where, message.offset(), message.key(), message.value(), headers))
        assert message.offset() >= next_offsets[where]
        next_offsets[where] = message.offset() + 1
    consumer.close()
    return records
