"""The producers: one task for each topic, which writes at a steady rate and records each acknowledgement."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final

from ottla.cli.demo.plan import LINES, ORDERS, PAYMENTS, RATES, TOPICS
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.cli.demo.workloads.ranges import ranges_of
from ottla.client import Client, Producer, ProducerRecord, TopicPartition

__all__ = ["POISON", "run"]

TICK_S: Final = 0.25
POISON: Final = "unreadable"
"""The card number of a poison record: no worker can check such a payment."""
WORDS: Final = [
    "tea",
    "cake",
    "river",
    "stone",
    "bread",
    "salt",
    "winter",
    "lamp",
    "letter",
    "garden",
    "bridge",
    "paper",
]
WORDS_A_LINE: Final = 5

Make = Callable[[Random, int, int], tuple[str, dict[str, object] | str]]
"""Makes key and value of a topic's next record from its partition and number."""


async def run(given: Ordered) -> None:
    async with given.client() as client, asyncio.TaskGroup() as tasks:
        for topic, make in _makers(given).items():
            tasks.create_task(_write(given, client, topic, make))


def _makers(given: Ordered) -> dict[str, Make]:
    poison = given.plan.poison()

    def order(random: Random, partition: int, number: int) -> tuple[str, dict[str, object] | str]:
        return f"customer-{random.randrange(500)}", {"order": number, "total": random.randrange(100, 20_000) / 100}

    def payment(random: Random, partition: int, number: int) -> tuple[str, dict[str, object] | str]:
        card = POISON if number in poison[partition] else f"{random.randrange(10**8):08d}"
        return f"payment-{partition}-{number}", {"amount": random.randrange(100, 20_000) / 100, "card": card}

    def line(random: Random, partition: int, number: int) -> tuple[str, dict[str, object] | str]:
        return f"line-{partition}-{number}", " ".join(random.choices(WORDS, k=WORDS_A_LINE))

    return {ORDERS: order, PAYMENTS: payment, LINES: line}


async def _write(given: Ordered, client: Client, topic: str, make: Make) -> None:
    """Write as many records per tick as the rate says; records that an outage prevents are not made up for."""
    random = given.random()
    numbers = [count() for _ in range(TOPICS[topic])]
    producer = Producer(client, idempotent=True)
    loop = asyncio.get_running_loop()
    owed, before = 0.0, loop.time()
    while not given.ended.is_set():
        now = loop.time()
        owed += RATES[topic] * min(now - before, 2 * TICK_S)
        before = now
        rounds, owed = divmod(owed, len(numbers))
        records = [
            _record(topic, at, next(numbers[at]), random, make)
            for at in range(len(numbers))
            for _ in range(int(rounds))
        ]
        delivered = await producer.send_all(records)
        at_offset = [(TopicPartition(topic, each.partition), each.offset or 0) for each in delivered]
        given.journal.note("written", ranges=ranges_of(at_offset))
        for record, (at, offset) in zip(records, at_offset, strict=True):
            if topic == PAYMENTS and POISON.encode() in (record.value or b""):
                given.journal.note("poison", topic=topic, partition=at.partition, offset=offset)
        await asyncio.sleep(max(0.0, TICK_S - (loop.time() - now)))


def _record(topic: str, partition: int, number: int, random: Random, make: Make) -> ProducerRecord:
    key, value = make(random, partition, number)
    text = value if isinstance(value, str) else json.dumps(value)
    return ProducerRecord(topic, text.encode(), key.encode(), partition=partition)
