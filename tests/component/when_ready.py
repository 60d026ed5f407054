"""Calls of librdkafka to a broker that has just started: Apache Kafka listens before it leads its partitions, and a new
leader of several replicas does not know at once what is committed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TIME_LIMIT_S = 60
NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.OFFSET_NOT_AVAILABLE,
)

Found = TypeVar("Found")


def when_ready(call: Callable[[], Found]) -> Found:
    """The result of a call, as soon as the broker leads what it asks for."""
    until = time.monotonic() + TIME_LIMIT_S
    while True:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET or time.monotonic() > until:
                raise
            time.sleep(0.05)


def watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Where a partition starts and ends."""
    at = TopicPartition(topic, partition)
    found: tuple[int, int] = when_ready(lambda: consumer.get_watermark_offsets(at, TIME_LIMIT_S))
    return found
