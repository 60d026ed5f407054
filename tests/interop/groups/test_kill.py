"""kill -9 of the broker while groups rebalance and commit: clients go on by themselves, and no commit is lost.

A commit that was acknowledged is there after the next start, every record is processed, and the group comes to rest at
the end of all partitions. Members are librdkafka's, aiokafka's and Java's; some come and go the whole time.

`KILLS=50 pytest -m interop tests/interop/groups/test_kill.py` is the long version.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Client, TopicPartition
from ottla.client.group_offsets import committed
from tests.interop import process
from tests.interop.apache import ApacheKafka
from tests.interop.groups.brokers import Node
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.node.brokers import OTTLA
from tests.interop.process import QUICK_START, java

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KILLS = {OTTLA: int(os.environ.get("KILLS", "6"))}
"""By broker; Apache Kafka takes long to start, and has to prove only what is expected."""
PARTITIONS = 6
TIME_LIMIT_S = 120
SESSION_MS = 6000
VERIFIABLE = "org.apache.kafka.tools.VerifiableConsumer"


class Ledger:
    """What was acknowledged: records by their place, and the furthest commit of each partition."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.produced: set[tuple[int, int]] = set()
        self.processed: set[tuple[int, int]] = set()
        self.commits: dict[int, int] = {}
        self.commit_count = 0

    def delivered(self, error: Any, message: Any) -> None:
        if error is None:
            with self._lock:
                self.produced.add((message.partition(), message.offset()))

    def process(self, places: list[tuple[int, int]]) -> None:
        with self._lock:
            self.processed.update(places)

    def acknowledge(self, offsets: dict[int, int]) -> None:
        with self._lock:
            self.commit_count += 1
            for partition, offset in offsets.items():
                self.commits[partition] = max(offset, self.commits.get(partition, 0))

    def furthest(self) -> dict[int, int]:
        with self._lock:
            return dict(self.commits)


class Worker(threading.Thread):
    """Runs until it is told to end; what it raises is shown by `finish`."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        super().__init__()
        self._work = work
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work(self._over)
        except BaseException as failure:  # noqa: BLE001 - `finish` raises it in the test's own thread
            self._failure = failure

    def finish(self) -> None:
        self._over.set()
        self.join(TIME_LIMIT_S)
        assert not self.is_alive(), "a client did not end"
        if self._failure is not None:
            raise self._failure


def producing(servers: str, topic: str, ledger: Ledger) -> Callable[[threading.Event], None]:
    def work(over: threading.Event) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        number = 0
        while not over.wait(0.02):
            for partition in range(PARTITIONS):
                producer.produce(topic, str(number), partition=partition, on_delivery=ledger.delivered)
            producer.poll(0)
            number += 1
        assert producer.flush(TIME_LIMIT_S) == 0

    return work


def librdkafka(
    servers: str, group: str, topic: str, ledger: Ledger, **settings: Any
) -> Callable[[threading.Event], None]:
    def work(over: threading.Event) -> None:
        from confluent_kafka import Consumer, KafkaException

        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        consumer.subscribe([topic])
        while not over.is_set():
            messages = [message for message in consumer.consume(200, 0.2) if message.error() is None]
            if not messages:
                continue
            ledger.process([(message.partition(), message.offset()) for message in messages])
            try:
                done = consumer.commit(asynchronous=False)
            except KafkaException:
                continue  # a rebalance came between, or the broker is gone: somebody else reads them again
            ledger.acknowledge({each.partition: each.offset for each in done if each.error is None})
        consumer.close()

    return work


def aiokafka_member(servers: str, group: str, topic: str, ledger: Ledger) -> Callable[[threading.Event], None]:
    async def consume(over: threading.Event) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.errors import KafkaError

        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()
        while not over.is_set():
            found = await consumer.getmany(timeout_ms=200)
            offsets = {at: records[-1].offset + 1 for at, records in found.items()}
            if not offsets:
                continue
            ledger.process([(at.partition, record.offset) for at, records in found.items() for record in records])
            try:
                await consumer.commit(offsets)
            except KafkaError:
                continue
            ledger.acknowledge({at.partition: offset for at, offset in offsets.items()})
        await consumer.stop()

    return lambda over: asyncio.run(consume(over))


@contextmanager
def java_member(servers: str, group: str, topic: str, ledger: Ledger, directory: Path) -> Iterator[None]:
    """kafka-verifiable-consumer, which commits what it reads and says so."""
    words = ("--bootstrap-server", servers, "--topic", topic, "--group-id", group, "--reset-policy", "earliest")
    output = directory / "verifiable.log"
    command = java(
        classpath(APACHE_KAFKA),
        VERIFIABLE,
        *words,
        "--session-timeout",
        str(SESSION_MS),
        "--verbose",
        options=QUICK_START,
        properties={"org.slf4j.simpleLogger.defaultLogLevel": "off"},
    )
    with output.open("wb") as file:
        program = process.start(command, file)
    try:
        yield
    finally:
        assert program.poll() is None, f"the Java member ended by itself: {process.tail(output)}"
        process.stop(program, timeout_s=TIME_LIMIT_S)
        take_events(output, ledger)


def take_events(output: Path, ledger: Ledger) -> None:
    for line in output.read_text().splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("name") == "record_data":
            ledger.process([(event["partition"], event["offset"])])
        elif event.get("name") == "offsets_committed" and event["success"]:
            ledger.acknowledge({place["partition"]: place["offset"] for place in event["offsets"]})


def committed_now(servers: str, group: str) -> dict[int, int]:
    async def ask() -> dict[TopicPartition, Any]:
        async with Client(servers, default_api_timeout_ms=30_000) as client:
            return await committed(client, group)

    return {at.partition: each.offset for at, each in asyncio.run(ask()).items()}


def check_kept(servers: str, group: str, before: dict[int, int]) -> None:
    """Nothing that was acknowledged is lost; what was on its way may have arrived as well."""
    now = committed_now(servers, group)
    assert {partition: now.get(partition, 0) for partition in before if now.get(partition, 0) < before[partition]} == {}


def coming_and_going(make: Callable[[], Callable[[threading.Event], None]]) -> Callable[[threading.Event], None]:
    """A member that leaves and joins again, so that there is always a rebalance."""

    def work(over: threading.Event) -> None:
        while not over.is_set():
            member = Worker(make())
            over.wait(2)
            member.finish()

    return work


def wait_for_commits(ledger: Ledger, count: int) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    wanted = ledger.commit_count + count
    while ledger.commit_count < wanted:
        assert time.monotonic() < deadline, "nobody commits any more"
        time.sleep(0.05)


def wait_for_rest(servers: str, group: str, ledger: Ledger) -> None:
    """All that was produced is processed and committed."""
    deadline = time.monotonic() + TIME_LIMIT_S
    ends = {partition: 1 + max(o for p, o in ledger.produced if p == partition) for partition in range(PARTITIONS)}
    while committed_now(servers, group) != ends:
        assert time.monotonic() < deadline, f"{committed_now(servers, group)} does not become {ends}"
        time.sleep(0.2)


def made(servers: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(TIME_LIMIT_S)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_no_commit_is_lost(kind: str, protocol: str, boot: Callable[..., Node], name: str, tmp_path: Path):
    node = boot(
        group_consumer_min_session_timeout_ms=SESSION_MS, group_consumer_session_timeout_ms=SESSION_MS
    )  # who is gone is missed soon
    servers = node.bootstrap_servers
    made(servers, name)
    ledger = Ledger()
    settings = {
        "classic": {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500},
        "consumer": {"group.protocol": "consumer"},
    }[protocol]
    seeded = random.Random(name)

    def member() -> Callable[[threading.Event], None]:
        return librdkafka(servers, name, name, ledger, **settings)

    workers = [Worker(producing(servers, name, ledger)), Worker(member()), Worker(coming_and_going(member))]
    if protocol == "classic":
        workers.append(Worker(aiokafka_member(servers, name, name, ledger)))
    with java_member(servers, name, name, ledger, tmp_path) if protocol == "classic" else nobody():
        for _ in range(KILLS.get(kind, 1)):
            wait_for_commits(ledger, 5)
            threading.Event().wait(seeded.uniform(0.05, 1.5))
            before = ledger.furthest()
            node.kill()
            node.start()
            check_kept(servers, name, before)
        wait_for_commits(ledger, 5)
        workers[0].finish()
        wait_for_rest(servers, name, ledger)
        for worker in workers[1:]:
            worker.finish()
    assert ledger.produced <= ledger.processed
    handed_over(node, name, ledger, tmp_path)


@contextmanager
def nobody() -> Iterator[None]:
    yield


def handed_over(node: Node, group: str, ledger: Ledger, tmp_path: Path) -> None:
    """Killed once more: Apache Kafka finds every commit in the directory that ottla has left."""
    before = committed_now(node.bootstrap_servers, group)
    node.kill()
    if isinstance(node, ApacheKafka):
        return
    with ApacheKafka(tmp_path / "apache", data_dir=node.data_dir) as kafka:
        assert committed_now(kafka.bootstrap_servers, group) == before
