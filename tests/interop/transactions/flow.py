"""Reads one topic and writes another in transactions that hold the offsets too, with librdkafka.

    python -m tests.interop.transactions.flow BOOTSTRAP FROM TO GROUP TRANSACTIONAL_ID SEED

It runs until it is killed, and whoever starts it again goes on where it stopped. Some transactions are aborted on
purpose. The Java program `TransactionalFlow` does the same.
"""

from __future__ import annotations

import random
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

ABORTED = 0.1
RECORDS_MAX = 500


def run(bootstrap: str, source: str, target: str, group: str, name: str, seeded: random.Random) -> None:
    """Until something happens that a producer or consumer cannot go on after."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 1_500,
            "heartbeat.interval.ms": 400,
            "reconnect.backoff.max.ms": 200,
        }
    )
    try:
        producer.init_transactions(30)
        consumer.subscribe([source])
        while True:
            messages = [each for each in consumer.consume(RECORDS_MAX, 0.1) if not each.error()]
            if messages:
                pass_on(producer, consumer, messages, target, is_abort=seeded.random() < ABORTED)
    finally:
        consumer.close()


def pass_on(producer: Producer, consumer: Consumer, messages: list[Message], target: str, *, is_abort: bool) -> None:
    first: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], int] = {}
    producer.begin_transaction()
    for message in messages:
        place = (message.topic(), message.partition())
        first.setdefault(place, message.offset())
        last[place] = message.offset()
        producer.produce(target, message.value(), message.key(), partition=message.partition())
    offsets = [TopicPartition(*place, offset + 1) for place, offset in last.items()]
    try:
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        if not is_abort:
            producer.commit_transaction(30)
            return
    except KafkaException as failure:
        if not failure.args[0].txn_requires_abort():
            raise
    producer.abort_transaction(30)
    for place, offset in first.items():
        consumer.seek(TopicPartition(*place, offset))


def main() -> None:
    bootstrap, source, target, group, name, seed = sys.argv[1:]
    seeded = random.Random(int(seed))
    while True:
        try:
            run(bootstrap, source, target, group, name, seeded)
        except KafkaException as failure:
            sys.stderr.write(f"begins anew after {failure}\n")


if __name__ == "__main__":
    main()
