"""librdkafka, kafka-python and aiokafka as transactional producers."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.node.brokers import APACHE

with warnings.catch_warnings():  # it reads its schemas in a way that Python is about to forget
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

PAIRS = 1_000


def create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        made.result(30)


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """What readers of committed records see up to the end of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while (message := consumer.poll(30)) is not None and not message.error():
        found.append(message.value())
    consumer.close()
    assert message is not None, "the end never came"
    return found


def commit_and_abort(producer: Producer, topic: str, number: int) -> None:
    producer.begin_transaction()
    producer.produce(topic, f"kept-{number}")
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, f"lost-{number}")
    producer.abort_transaction(30)


def test_librdkafka_aborts_at_once_after_a_commit(kind: str, bootstrap_servers: str, name: str):
    """On Apache Kafka the abort may meet the commit that is still under way, and librdkafka gives up for good."""
    create(bootstrap_servers, name)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    for number in range(PAIRS):
        try:
            commit_and_abort(producer, name, number)
        except KafkaException as failure:
            if kind == APACHE and failure.args[0].fatal():
                pytest.skip(f"Apache Kafka: fatal to librdkafka after {number}, see docs/reference/differences.md")
            raise
    assert committed(bootstrap_servers, name) == [f"kept-{number}".encode() for number in range(PAIRS)]


def test_a_second_librdkafka_producer_shuts_out_the_first(bootstrap_servers: str, name: str):
    create(bootstrap_servers, name)
    settings = {"bootstrap.servers": bootstrap_servers, "transactional.id": name}
    old, new = Producer(settings), Producer(settings)
    old.init_transactions(30)
    old.begin_transaction()
    old.produce(name, b"lost")
    old.flush(30)
    new.init_transactions(30)
    new.begin_transaction()
    new.produce(name, b"kept")
    new.commit_transaction(30)
    with pytest.raises(KafkaException) as failure:
        old.commit_transaction(30)
    assert failure.value.args[0].fatal()
    assert committed(bootstrap_servers, name) == [b"kept"]


def test_kafka_python(bootstrap_servers: str, name: str):
    create(bootstrap_servers, name)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=name, acks="all")
    producer.init_transactions()
    for number, end in enumerate([producer.commit_transaction, producer.abort_transaction] * 3):
        producer.begin_transaction()
        producer.send(name, str(number).encode()).get(30)
        end()
    producer.close()
    assert committed(bootstrap_servers, name) == [b"0", b"2", b"4"]


def test_aiokafka(bootstrap_servers: str, name: str):
    create(bootstrap_servers, name)

    async def produce() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=name) as producer:
            for number in range(6):
                await producer.begin_transaction()
                await producer.send_and_wait(name, str(number).encode())
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())

    asyncio.run(produce())
    assert committed(bootstrap_servers, name) == [b"0", b"2", b"4"]
