"""How long real clients take for 1 MB, both ways, when a quota allows them 10,000 bytes a second."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ottla.wire.types import AlterClientQuotasRequest
from tests.component.broker.raw_client import RawClient, Topic, batch
from tests.interop.apache import tool

RATE = 10_000.0
COUNT, SIZE = 1000, 1000
TIMEOUT_S = 400

PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"


class Target(NamedTuple):
    bootstrap_servers: str
    topic: str
    client_id: str
    directory: Path


def set_quotas(client: RawClient, client_ids: list[str]) -> None:
    kind = AlterClientQuotasRequest
    limits = tuple(kind.OpData(f"{who}_byte_rate", RATE) for who in ("producer", "consumer"))
    answer = client.ask(
        kind(tuple(kind.EntryData((kind.EntityData("client-id", name),), limits) for name in client_ids)), 1
    )
    assert not any(each.error_code for each in answer.entries), answer


def fill(client: RawClient) -> Topic:
    """A topic with 1 MB in batches of ten records, by somebody without a limit."""
    topic = client.topic()
    for _ in range(COUNT // 10):
        assert client.produce(topic, batch(*[bytes(SIZE)] * 10)).error_code == 0
    return topic


def java_produces(target: Target) -> float:
    settings = (
        f"bootstrap.servers={target.bootstrap_servers}",
        f"client.id={target.client_id}",
        "delivery.timeout.ms=600000",
    )
    load = ("--num-records", str(COUNT), "--record-size", str(SIZE), "--throughput", "-1")
    said = tool(
        PRODUCER_PERFORMANCE, "--topic", target.topic, *load, "--producer-props", *settings, timeout_s=TIMEOUT_S
    )
    found = re.search(rf"^{COUNT} records sent, ([\d.]+) records/sec", said, re.MULTILINE)
    assert found, said
    return COUNT / float(found[1])


def java_fetches(target: Target) -> float:
    config = target.directory / f"{target.client_id}.properties"
    config.write_text(f"client.id={target.client_id}\nauto.offset.reset=earliest\n")
    where = ("--bootstrap-server", target.bootstrap_servers, "--topic", target.topic, "--group", target.client_id)
    load = ("--messages", str(COUNT), "--timeout", "60000", "--consumer.config", str(config))
    started = time.monotonic()
    said = tool(CONSUMER_PERFORMANCE, *where, *load, timeout_s=TIMEOUT_S)
    took_s = time.monotonic() - started
    assert f" {COUNT}," in said, said
    return took_s


def librdkafka_produces(target: Target) -> float:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "client.id": target.client_id,
            "batch.size": 16_384,
            "message.timeout.ms": 300_000,
            "socket.timeout.ms": 300_000,  # a request waits behind all that were sent before it
        }
    )
    started = time.monotonic()
    for _ in range(COUNT):
        producer.produce(target.topic, bytes(SIZE))
    assert producer.flush(TIMEOUT_S) == 0
    return time.monotonic() - started


def librdkafka_fetches(target: Target) -> float:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "client.id": target.client_id,
            "group.id": target.client_id,
            "auto.offset.reset": "earliest",
            "socket.timeout.ms": 60_000,
        }
    )
    consumer.subscribe([target.topic])
    seen, started = 0, time.monotonic()
    while seen < COUNT and time.monotonic() - started < TIMEOUT_S:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None, message.error()
            seen += 1
    took_s = time.monotonic() - started
    consumer.close()
    assert seen == COUNT
    return took_s


WAYS: dict[str, Callable[[Target], float]] = {
    "java-produces": java_produces,
    "java-fetches": java_fetches,
    "librdkafka-produces": librdkafka_produces,
    "librdkafka-fetches": librdkafka_fetches,
}
