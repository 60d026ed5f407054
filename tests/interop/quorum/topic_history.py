"""What was in a topic from its beginning, although the cluster deletes what is old."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.component.broker.kill_load import PARTITIONS, Placed
from tests.component.when_ready import watermarks
from tests.interop.quorum.background import TIME_LIMIT_S, Background

_POLL_S = 0.2


class TopicHistory(Background):
    """Reads the committed records of a topic while they are written, and keeps them."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self._records: list[Placed] = []
        self._ends = dict.fromkeys(range(PARTITIONS), -1)
        """How far each partition was read when nothing more was there."""
        super().__init__(servers)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "none",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        consumer = self._consumer()
        consumer.assign([TopicPartition(self._topic, partition, 0) for partition in range(PARTITIONS)])
        while not self._is_over.is_set():
            for message in consumer.consume(500, _POLL_S):
                if message.error() is None:
                    self._records.append(Placed(message.partition(), message.offset(), message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    self._ends[message.partition()] = message.offset()
                else:  # without faults there is none; _AUTO_OFFSET_RESET: records were deleted before they were read
                    raise AssertionError(f"{self._topic}: {message.error()}")
        consumer.close()

    def read(self) -> list[Placed]:
        """All records up to now, partition by partition."""
        consumer = self._consumer()
        ends = {partition: watermarks(consumer, self._topic, partition)[1] for partition in range(PARTITIONS)}
        consumer.close()
        deadline = time.monotonic() + TIME_LIMIT_S
        while any(self._ends[partition] < end for partition, end in ends.items()):
            self.check()
            assert time.monotonic() < deadline, f"{self._topic} was read up to {self._ends}, not {ends}"
            time.sleep(_POLL_S)
        return sorted(self._records)
