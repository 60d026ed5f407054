"""Other people's Python clients doing one round each: write ten records, read them back as a member of a group."""

import asyncio
import time
from collections.abc import Callable

COUNT = 10
TIME_LIMIT_S = 60
VALUES = {f"value-{number}".encode() for number in range(COUNT)}


def confluent(bootstrap_servers: str, topic: str) -> set[bytes]:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "client.id": "interop-librdkafka"})
    for value in sorted(VALUES):
        producer.produce(topic, value)
    assert producer.flush(TIME_LIMIT_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "interop-librdkafka",
            "group.id": f"{topic}-librdkafka",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    read: set[bytes] = set()
    deadline = time.monotonic() + TIME_LIMIT_S
    while read != VALUES and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            read.add(message.value())
    consumer.close()
    return read


def kafka_python(bootstrap_servers: str, topic: str) -> set[bytes]:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, client_id="interop-kafka-python")
    for value in sorted(VALUES):
        producer.send(topic, value)
    producer.flush(TIME_LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        client_id="interop-kafka-python",
        group_id=f"{topic}-kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIME_LIMIT_S * 1000,
    )
    assert consumer.partitions_for_topic(topic), "it must know the topic before it joins"
    consumer.subscribe([topic])
    read: set[bytes] = set()
    for record in consumer:
        read.add(record.value)
        if read == VALUES:
            break
    consumer.close()
    return read


def aiokafka(bootstrap_servers: str, topic: str) -> set[bytes]:
    return asyncio.run(_aiokafka(bootstrap_servers, topic))


async def _aiokafka(bootstrap_servers: str, topic: str) -> set[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with asyncio.timeout(TIME_LIMIT_S):
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, client_id="interop-aiokafka") as producer:
            for value in sorted(VALUES):
                await producer.send_and_wait(topic, value)
        read: set[bytes] = set()
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap_servers,
            client_id="interop-aiokafka",
            group_id=f"{topic}-aiokafka",
            auto_offset_reset="earliest",
        ) as consumer:
            while read != VALUES:
                read.add((await consumer.getone()).value)
    return read


CLIENTS: dict[str, Callable[[str, str], set[bytes]]] = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
