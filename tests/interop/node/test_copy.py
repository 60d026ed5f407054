"""`ottla topics copy` that is killed again and again: nothing is lost, and with --exactly-once nothing comes twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid

import pytest

from ottla.client import EARLIEST, LATEST, Client, Producer, ProducerRecord, TopicPartition, fetch, list_offsets
from ottla.client.topics import NewTopic, create

PARTITIONS, RECORDS, KILLS = 3, 30_000, 4
AT_A_TIME = 3_000
DEADLINE_S = 120.0


@pytest.fixture
def topic(bootstrap_servers: str) -> str:
    """Its name; it has numbers in all partitions, too many for one round of a copy."""
    name = f"copied-{uuid.uuid4().hex[:8]}"

    async def fill() -> None:
        filling = bytes(1000)
        async with Client(bootstrap_servers) as client:
            await create(client, NewTopic(name, PARTITIONS, 1))
            for first in range(0, RECORDS, AT_A_TIME):
                some = range(first, first + AT_A_TIME)
                records = [ProducerRecord(name, b"%d" % each + filling, partition=each % PARTITIONS) for each in some]
                await Producer(client).send_all(records)

    asyncio.run(fill())
    return name


async def numbers(bootstrap_servers: str, topic: str) -> list[int]:
    """The committed records of a topic."""
    starts = {TopicPartition(topic, each): EARLIEST for each in range(PARTITIONS)}
    async with Client(bootstrap_servers) as client:
        found = fetch(client, starts, until=LATEST, isolation="read_committed")
        return sorted([int((record.value or b"").rstrip(b"\0")) async for record in found])


async def killed(client: Client, command: list[str], topic: str, before: int) -> int:
    """Run a copy, and kill it as soon as it has written something; gives how much there is then."""
    places = {TopicPartition(topic, each): LATEST for each in range(PARTITIONS)}
    until_s = time.monotonic() + DEADLINE_S
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    now = before
    while now == before and process.returncode is None:
        assert time.monotonic() < until_s, "it does not go on"
        now = sum(each.offset for each in (await list_offsets(client, places)).values())
    if process.returncode is None:
        process.kill()
    await process.wait()
    return now


async def kill_again_and_again(bootstrap_servers: str, command: list[str], topic: str) -> int:
    async with Client(bootstrap_servers) as client:
        await create(client, NewTopic(topic, PARTITIONS, 1))
        seen = 0
        for _ in range(KILLS):
            seen = await killed(client, command, topic, seen)
        return seen


@pytest.mark.parametrize("how", [[], ["--exactly-once"]], ids=["at-least-once", "exactly-once"])
def test_a_copy_that_is_killed_continues(bootstrap_servers: str, topic: str, how: list[str]):
    target, group = f"{topic}-copy", f"{topic}-copier"
    command = [
        sys.executable, "-m", "ottla", "topics", "copy", topic, target, "--group", group, *how,
        "--bootstrap", bootstrap_servers,
    ]  # fmt: skip
    assert asyncio.run(kill_again_and_again(bootstrap_servers, command, target)) > 0
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    copied = asyncio.run(numbers(bootstrap_servers, target))
    assert sorted(set(copied)) == list(range(RECORDS))
    if how:
        assert len(copied) == RECORDS
