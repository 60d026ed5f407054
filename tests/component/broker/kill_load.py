"""Producers that write through crashes of their broker and keep a ledger of what was acknowledged.

Each producer numbers its records per partition, so what the log holds in the end can be judged by itself: an idempotent
producer's numbers must be all there, once, in order. Of the others, what was acknowledged must lie where the broker
said, and repeats may only be what was sent again. Where a partition has several replicas, what only its leader has
acknowledged (acks=1) may be lost with the leader.
"""

import itertools
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.component.when_ready import watermarks

TOPIC = "load"
PARTITIONS = 3
TIME_LIMIT_S = 240
"""The bound of everything that is waited for. It takes seconds, where a machine has nothing else to do."""
UNACKNOWLEDGED_MAX = 2_000
PAUSE_S = 0.002  # between two records of a producer, so that hundreds of kills leave a log that can still be checked
PRODUCERS: dict[str, dict[str, Any]] = {
    "idempotent": {"enable.idempotence": True},
    "idempotent-lz4": {"enable.idempotence": True, "compression.type": "lz4", "linger.ms": 2},
    "all": {"acks": "all", "max.in.flight": 1},
    "leader": {"acks": 1, "max.in.flight": 1, "compression.type": "zstd"},
}
PATIENT = {
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 50,
    "message.timeout.ms": TIME_LIMIT_S * 1000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
"""Come back soon after a crash, and do not give up."""


class Placed(NamedTuple):
    """A record at its place: what a producer was told, or what a consumer read."""

    partition: int
    offset: int | None
    """None where librdkafka only knows that the record was written, because a later one was."""
    value: bytes


class Load:
    """Runs the producers in threads from its making until `finish`."""

    def __init__(
        self,
        bootstrap_servers: str,
        producers: Mapping[str, dict[str, Any]] = PRODUCERS,
        replicas: int = 1,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.producers = producers
        self._pause_s = pause_s
        self.is_replicated = replicas > 1
        self.acknowledged: dict[str, list[Placed]] = {name: [] for name in producers}
        self.sent: dict[str, int] = {}
        self.errors: list[str] = []
        self._servers = bootstrap_servers
        self._enough = threading.Event()
        create_topic(bootstrap_servers, replicas)
        self._threads = [threading.Thread(target=self._produce, args=item, daemon=True) for item in producers.items()]
        for thread in self._threads:
            thread.start()

    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def wait_for(self, more: int) -> None:
        """Wait until so many more records are acknowledged."""
        goal = self.count() + more
        for _ in range(TIME_LIMIT_S * 100):
            if self.count() >= goal or self.errors:
                break
            self._enough.wait(0.01)
        assert not self.errors, self.errors
        assert self.count() >= goal, "no progress"

    def stop(self) -> None:
        """Send nothing more; do not wait."""
        self._enough.set()

    def finish(self) -> None:
        """End the load: everything that was sent is acknowledged by now."""
        self.stop()
        for thread in self._threads:
            thread.join(TIME_LIMIT_S)
            assert not thread.is_alive()
        assert not self.errors, self.errors

    def _produce(self, name: str, settings: dict[str, Any]) -> None:
        producer = Producer({"bootstrap.servers": self._servers, **PATIENT, **settings})
        acknowledged = self.acknowledged[name]

        def report(error: Any, message: Any) -> None:
            if error is not None:
                self.errors.append(f"{name}: {error}")
            else:
                acknowledged.append(Placed(message.partition(), message.offset(), message.value()))

        for number in itertools.count():
            if self._enough.is_set() or self.errors:
                break
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, f"{name} {number}".encode(), partition=partition, on_delivery=report)
            self.sent[name] = number + 1
            producer.poll(0)
            self._enough.wait(self._pause_s)
            while len(producer) > UNACKNOWLEDGED_MAX and not self._enough.is_set():
                producer.poll(0.01)
        if producer.flush(TIME_LIMIT_S):
            self.errors.append(f"{name}: {len(producer)} records were never answered")


def create_topic(bootstrap_servers: str, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    [created] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)]).values()
    created.result(TIME_LIMIT_S)


def read_log(bootstrap_servers: str) -> list[Placed]:
    """All records, partition by partition, as the broker serves them."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "none", "enable.auto.commit": False})
    records: list[Placed] = []
    for partition in range(PARTITIONS):
        low, high = watermarks(consumer, TOPIC, partition)
        consumer.assign([TopicPartition(TOPIC, partition, low)])
        while low < high:
            messages = consumer.consume(min(high - low, 10_000), 10)
            assert messages, f"nothing at offset {low} of partition {partition}, which ends at {high}"
            for message in messages:
                assert message.error() is None, message.error()
                assert message.offset() == low
                records.append(Placed(partition, low, message.value()))
                low += 1
    consumer.close()
    return records


def check(load: Load, records: list[Placed]) -> None:
    """Nothing acknowledged is missing or elsewhere, nothing is out of order, nothing idempotent is there twice. With
    replicas, order is promised to idempotent producers only."""
    found = {*records, *(each._replace(offset=None) for each in records)}
    may_lose = {name for name, settings in load.producers.items() if load.is_replicated and settings.get("acks") == 1}
    for name, acknowledged in load.acknowledged.items():
        missing = [each for each in acknowledged if each not in found and name not in may_lose]
        assert not missing, f"{name}: {len(missing)} acknowledged records are missing, such as {missing[0]}"
    for (name, partition), found_numbers in numbers_of(records).items():
        if name in load.producers:
            is_idempotent = "enable.idempotence" in load.producers[name]
            once = found_numbers if is_idempotent else list(dict.fromkeys(found_numbers))
            if load.is_replicated and not is_idempotent:
                # When a partition moves, librdkafka sends to the new leader while the old one has not answered yet.
                once = sorted(once)
            expected = sorted(once) if name in may_lose else list(range(load.sent[name]))
            assert once == expected, f"{name}, partition {partition}"


def numbers_of(records: list[Placed]) -> dict[tuple[str, int], list[int]]:
    """The numbers of each producer in each partition, in the order of the log."""
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for partition, _, value in records:
        name, number = value.decode().split()
        numbers[name, partition].append(int(number))
    return numbers
