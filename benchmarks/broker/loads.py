"""Real clients under load: librdkafka through confluent-kafka, and the producer test that comes with Apache Kafka."""

import re
import time
from collections.abc import Mapping
from types import MappingProxyType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.interop import process
from tests.interop.jars import APACHE_KAFKA, classpath

FLUSH_TIMEOUT_S = 120.0
IDLE_MAX_S = 30.0
CONSUME_MANY = 10_000
_PERF = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


def produce(
    port: int,
    topic: str,
    count: int,
    value_bytes: int,
    batch_bytes: int,
    security: Mapping[str, str] = MappingProxyType({}),
) -> float:
    """Seconds for so many records from the first call until the last acknowledgement."""
    problems: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": "all",
            "batch.size": batch_bytes,
            "batch.num.messages": 100_000,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 256 * 1024,
            "error_cb": problems.append,
            **security,
        }
    )
    producer.list_topics(topic, timeout=10)  # connected, so that only the load counts
    value = b"v" * value_bytes
    start = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(FLUSH_TIMEOUT_S)
    seconds = time.perf_counter() - start
    assert left == 0, f"{left} records were not acknowledged; {problems[:3]}"
    return seconds


def fetch(port: int, topic: str, count: int, security: Mapping[str, str] = MappingProxyType({})) -> float:
    """Seconds until so many records are read from the beginning of a topic, without a group."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 256 * 1024,
            "check.crcs": False,
            **security,
        }
    )
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    start = last = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen = 0
    while seen < count:
        messages = consumer.consume(CONSUME_MANY, timeout=0.2)
        now = time.perf_counter()
        last = now if messages else last
        assert now - last < IDLE_MAX_S, f"only {seen} of {count} records came"
        seen += sum(1 for message in messages if message.error() is None)
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


def java_produce(port: int, topic: str, count: int, value_bytes: int, batch_bytes: int) -> float:
    """Seconds by what kafka-producer-perf-test itself reports."""
    properties = [f"bootstrap.servers=127.0.0.1:{port}", "acks=all", f"batch.size={batch_bytes}", "linger.ms=20"]
    arguments = ["--topic", topic, "--num-records", str(count), "--record-size", str(value_bytes)]
    command = process.java(
        classpath(APACHE_KAFKA),
        "org.apache.kafka.tools.ProducerPerformance",
        *arguments,
        *("--throughput", "-1", "--producer-props", *properties),
        heap="512m",
        properties={"org.slf4j.simpleLogger.defaultLogLevel": "error"},
    )
    output = process.run(command, timeout_s=FLUSH_TIMEOUT_S)
    summaries = _PERF.findall(output)
    assert summaries, f"kafka-producer-perf-test said nothing of its rate:\n{output}"
    sent, rate = summaries[-1]
    assert int(sent) == count, output
    return count / float(rate)
