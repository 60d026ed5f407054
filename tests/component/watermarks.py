"""Where a partition starts and ends, asked with librdkafka."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TIME_LIMIT_S = 60


def watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Start and end, as soon as the broker leads the partition: Apache Kafka listens before it does."""
    until = time.monotonic() + TIME_LIMIT_S
    while True:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIME_LIMIT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return found
