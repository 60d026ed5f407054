"""docs/how-to/share.md: its examples in Python work."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from ottla.client import Client, Producer, ProducerRecord, topics
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.group_offsets import share_starts

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "share.md").read_text()
EXAMPLES = re.findall(r"(?<!-->\n)^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TIME_LIMIT_S = 30.0


def defined(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    hurried = source.replace("asyncio.run(main())\n", "").replace("timeout_ms=5000", "timeout_ms=1000")
    exec(compile(hurried, "docs/how-to/share.md", "exec"), names)
    return names


async def prepare(client: Client, *jobs: bytes) -> None:
    await topics.create(client, topics.NewTopic("jobs", partitions=1))
    for group in ("workers", "counters"):
        earliest = Change(Operation.SET, "share.auto.offset.reset", "earliest")
        await alter(client, Resource(ResourceType.GROUP, group), [earliest])
    await Producer(client).send_all([ProducerRecord("jobs", job) for job in jobs])


async def until_done(client: Client, work: Any) -> None:
    """Let a worker that never ends by itself work until nothing is left."""
    async with asyncio.timeout(TIME_LIMIT_S):
        task = asyncio.create_task(work)
        while [each.lag for each in (await share_starts(client, "workers")).values()] != [0]:
            pass
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_the_examples_work(capsys: pytest.CaptureFixture[str]):
    implicit, explicit, counting = map(defined, EXAMPLES)
    handled: list[bytes | None] = []

    def handle(value: bytes | None) -> None:
        handled.append(value)
        if value == b"broken":
            raise ValueError(value)
        if value == b"later" and handled.count(value) < 2:
            raise ConnectionError(value)

    explicit["handle"] = handle

    async def body(bootstrap_servers: str) -> None:
        async with Client(bootstrap_servers) as client:
            await prepare(client, b"good", b"broken", b"later", *[b"more"] * 500)
            await until_done(client, explicit["work"](client))
            assert await counting["count"](client) == 503

    with ottla.testing.broker() as broker:
        asyncio.run(body(broker.bootstrap_servers))
    assert {job: handled.count(job) for job in set(handled)} == {b"good": 1, b"broken": 1, b"later": 2, b"more": 500}
    assert callable(implicit["main"])
