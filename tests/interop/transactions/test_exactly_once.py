"""Every record passed on exactly once and in order, whoever crashes meanwhile: clients, broker, or both.

`RECORDS=1000000 pytest -m interop tests/interop/transactions/test_exactly_once.py` is the long version.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop import process
from tests.interop.node.brokers import APACHE
from tests.interop.transactions.flow_programs import CLIENTS, flow_command
from tests.interop.transactions.nodes import Node

RECORDS = int(os.environ.get("RECORDS", "100000"))
PARTITIONS = 4
WORKERS = 2
TIME_LIMIT_S = 120
"""Without a record that gets through. How long all take depends on the machine."""
CLIENT_CRASHES_EVERY_S = (3.0, 6.0)
CLIENT_CRASHES_MAX = 25
"""On a busy machine, clients that crash for ever come to no end."""
BROKER_CRASHES = {APACHE: 1}
"""Apache Kafka takes much longer to come back."""
LOST_MARKERS = "these partitions are likely deleted already and hence can be skipped"
"""Said by an Apache Kafka that came back while it was ending a transaction. Nobody gets past that transaction."""


class Flow:
    """Programs that pass records on; one of them is killed now and then and started again."""

    def __init__(self, client: str, bootstrap: str, name: str, directory: Path) -> None:
        self._client = client
        self._arguments = [bootstrap, f"{name}-from", f"{name}-to", f"{name}-group"]
        self._name = name
        self._seeded = random.Random(name)
        self._log = (directory / "flow.log").open("wb")
        self._workers: list[subprocess.Popen[bytes]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._crash)
        self.crashes = 0

    def __enter__(self) -> Flow:
        self._workers = [self._start(number) for number in range(WORKERS)]
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()
        for worker in self._workers:
            process.kill(worker)
        self._log.close()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        arguments = [*self._arguments, f"{self._name}-{number}", str(self._seeded.randrange(1 << 30))]
        return process.start(flow_command(self._client, *arguments), self._log)

    def _crash(self) -> None:
        while self.crashes < CLIENT_CRASHES_MAX and not self._is_over.wait(
            self._seeded.uniform(*CLIENT_CRASHES_EVERY_S)
        ):
            number = self._seeded.randrange(WORKERS)
            process.kill(self._workers[number])
            self._workers[number] = self._start(number)
            self.crashes += 1


def fill(bootstrap: str, name: str) -> None:
    """Numbers in order, to one partition after the other."""
    topics = [NewTopic(f"{name}-{end}", PARTITIONS, 1) for end in ("from", "to")]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result(30)
    settings = {"queue.buffering.max.messages": RECORDS + 1, "linger.ms": 20, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for number in range(RECORDS):
        producer.produce(f"{name}-from", str(number).encode(), partition=number % PARTITIONS)
    assert not producer.flush(60)


def passed_on(bootstrap: str, name: str) -> Iterator[tuple[int, int]]:
    """Partition and number of the committed records, as they come, until there are enough of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{name}-judge",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(f"{name}-to", number, 0) for number in range(PARTITIONS)])
    try:
        while True:
            for message in consumer.consume(10_000, 0.2):
                if message.error() is None:
                    yield message.partition(), int(message.value())
            yield -1, -1  # a moment has gone by
    finally:
        consumer.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_exactly_once(client: str, kind: str, txn_version: int, boot: Callable[..., Node], tmp_path: Path, name: str):
    if client == "librdkafka" and txn_version == 2:
        pytest.skip("librdkafka follows transaction version 1 whatever the cluster has")
    node = boot()
    fill(node.bootstrap_servers, name)
    found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    deadline, seen = time.monotonic() + TIME_LIMIT_S, 0
    crashes_left = BROKER_CRASHES.get(kind, 3)
    count = 0
    with Flow(client, node.bootstrap_servers, name, tmp_path) as flow:
        for partition, number in passed_on(node.bootstrap_servers, name):
            if partition < 0:
                if count > seen:
                    deadline, seen = time.monotonic() + TIME_LIMIT_S, count
                assert time.monotonic() < deadline, f"{count} of {RECORDS} after {flow.crashes} crashes of clients"
                if count >= RECORDS:
                    break
                continue
            found[partition].append(number)
            count += 1
            if crashes_left and count > RECORDS * (1 - crashes_left / (BROKER_CRASHES.get(kind, 3) + 1)):
                crashes_left -= 1
                node.kill()
                node.start()
                if kind == APACHE and LOST_MARKERS in node.log:
                    pytest.skip("Apache Kafka: markers are lost, see docs/reference/differences.md")
    assert not crashes_left
    for partition in range(PARTITIONS):
        assert found[partition] == list(range(partition, RECORDS, PARTITIONS)), f"partition {partition}"
