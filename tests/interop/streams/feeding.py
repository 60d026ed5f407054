"""Feeds applications and reads what they write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from ottla.client import EARLIEST, LATEST, Client, Producer, ProducerRecord, fetch, topics

TIMEOUT_S = 90


def create(servers: str, *names: str, partitions: int = 2) -> None:
    """Topics that keep records of any age: some tests set the time of theirs."""
    configs = {"retention.ms": "-1"}

    async def work() -> None:
        async with Client(servers) as client:
            await topics.create(
                client, *(topics.NewTopic(name, partitions=partitions, configs=configs) for name in names)
            )

    asyncio.run(work())


def feed(servers: str, topic: str, pairs: Iterable[tuple[str, str]], *, timestamp_ms: int | None = None) -> None:
    async def work() -> None:
        async with Client(servers) as client:
            records = [
                ProducerRecord(topic, value.encode(), key.encode(), timestamp_ms=timestamp_ms) for key, value in pairs
            ]
            await Producer(client).send_all(records)

    asyncio.run(work())


def read(servers: str, topic: str, partitions: int = 2) -> list[tuple[str, str]]:
    """What is committed there, partition by partition."""

    async def work() -> list[tuple[str, str]]:
        async with Client(servers) as client:
            start = {(topic, index): EARLIEST for index in range(partitions)}
            return [
                ((record.key or b"").decode(), (record.value or b"").decode())
                async for record in fetch(client, start, until=LATEST, isolation="read_committed")
            ]

    return asyncio.run(work())


def wait_until(what: str, holds: Callable[[], bool], *, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.1)


def wait_for(servers: str, topic: str, expected: dict[str, str], partitions: int = 2) -> None:
    """Until the newest value of each key is what it should be."""
    deadline = time.monotonic() + TIMEOUT_S
    while (seen := dict(read(servers, topic, partitions))) != expected:
        assert time.monotonic() < deadline, f"{topic} has {seen}, not {expected}"
        time.sleep(0.1)
