"""Loads on share groups: Java's consumers, Kafka's own performance test, and our consumer."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from ottla.client import Client, ShareConsumer, ShareRecord, topics
from ottla.client.blocking import BlockingClient
from tests.interop import process
from tests.interop.apache import tool
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA, libraries

JAVA_SOURCES = Path(__file__).parent / "java"
PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
VALUE = b"x" * 100
LIMIT_S = 300.0
POLL_MS = 500


class Times(NamedTuple):
    to_first_s: float
    """From the consumers' start to the first record."""
    first_to_last_s: float


def fill(servers: str, topic: str, partitions: int, records: int) -> None:
    """A topic with so many records of 100 bytes, in batches of 16 KB as producers write them by default."""
    with BlockingClient(servers) as client:
        client.call(topics.create, topics.NewTopic(topic, partitions))
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 20, "batch.size": 16_384, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=number // 1_000 % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 10_000:
            producer.poll(0)
    assert producer.flush(60) == 0


# --- Java -------------------------------------------------------------------------------------------------------------


def with_java(servers: str, group: str, topic: str, consumers: int, records: int) -> Times:
    """Consumers of Java in one virtual machine."""
    classes = class_files("share-load", sorted(JAVA_SOURCES.rglob("*.java")), APACHE_KAFKA)
    path = f"{classes}:{libraries(APACHE_KAFKA)}/*"
    quiet = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}
    arguments = (servers, group, topic, str(consumers), str(records))
    command = process.java(path, "share.Load", *arguments, heap="1g", properties=quiet)
    said = process.run(command, timeout_s=LIMIT_S)
    found = re.search(r"^seconds (\S+) (\S+)$", said, re.MULTILINE)
    assert found, said
    return Times(float(found[1]), float(found[2]))


def with_performance_test(servers: str, group: str, topic: str, records: int) -> float:
    """Records in a second as kafka-share-consumer-perf-test counts them, its joining included."""
    words = ("--bootstrap-server", servers, "--topic", topic, "--group", group, "--num-records", str(records))
    said = tool(PERFORMANCE, *words, "--timeout", "60000", timeout_s=LIMIT_S).splitlines()
    heading = next(line for line in said if line.startswith("start.time"))
    figures = dict(zip(heading.split(", "), said[said.index(heading) + 1].split(", "), strict=True))
    return float(figures["nMsg.sec"])


# --- ours -------------------------------------------------------------------------------------------------------------


def with_ottla(servers: str, group: str, topic: str, consumers: int, records: int) -> Times:
    """Our consumers in one process; batches are counted by their headers, as nobody looks at the records."""
    return asyncio.run(_consume(servers, group, topic, consumers, records))


async def _consume(servers: str, group: str, topic: str, consumers: int, records: int) -> Times:
    started_at = time.perf_counter()
    count, first_at, last_at = 0, 0.0, 0.0

    async def work(client: Client) -> None:
        nonlocal count, first_at, last_at
        async with ShareConsumer(client, group, [topic], max_wait_ms=100) as consumer:
            while count < records:
                got = sum(map(len, await consumer.poll()))
                first_at = first_at or (time.perf_counter() if got else 0.0)
                count += got
                if count >= records and not last_at:
                    last_at = time.perf_counter()
            await consumer.commit()

    async with asyncio.timeout(LIMIT_S), Client(servers) as client:
        await asyncio.gather(*(work(client) for _ in range(consumers)))
    return Times(first_at - started_at, last_at - first_at)


@asynccontextmanager
async def explicit_consumer(servers: str, group: str, topic: str, max_records: int) -> AsyncIterator[ShareConsumer]:
    async with asyncio.timeout(LIMIT_S), Client(servers) as client:
        consumer = ShareConsumer(
            client, group, [topic], acknowledgement="explicit", max_records=max_records, max_wait_ms=100
        )
        async with consumer:
            yield consumer


async def acknowledge_in_turn(servers: str, group: str, topic: str, count: int) -> list[float]:
    """Seconds from sending to hearing, for records that are accepted one at a time."""
    times: list[float] = []
    async with explicit_consumer(servers, group, topic, 500) as consumer:
        while len(times) < count:
            times.append(await _accept(consumer, await anext(consumer)))
    return times


async def acknowledge_in_a_crowd(servers: str, group: str, topic: str, in_flight: int, count: int) -> list[float]:
    """The same, every second record, while so many others are in flight; nothing is fetched meanwhile."""
    held: list[ShareRecord] = []
    async with explicit_consumer(servers, group, topic, 10_000) as consumer:
        while len(held) < in_flight:
            held += [record for acquired in await consumer.poll(POLL_MS) for record in acquired.records()]
        return [await _accept(consumer, record) for record in held[1 : 2 * count : 2]]


async def _accept(consumer: ShareConsumer, record: ShareRecord) -> float:
    consumer.accept(record)
    began = time.perf_counter()
    outcomes = await consumer.commit()
    seconds = time.perf_counter() - began
    assert set(outcomes.values()) == {None}, outcomes
    return seconds
