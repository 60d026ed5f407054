"""What docs/how-to/client.md shows has to work."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Client, topics
from tests.interop.apache import ApacheKafka

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "client.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def defined(program: str, address: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(program.replace("localhost:9092", address), str(PAGE), "exec"), names)
    return names


def test_the_programs_do_what_they_say(apache_kafka: ApacheKafka, capsys: pytest.CaptureFixture[str]):
    first, send, poll, security, blocking = PROGRAMS
    defined(first, apache_kafka.bootstrap_servers)
    placed, *records = capsys.readouterr().out.splitlines()
    assert placed.split()[1] == "0"
    assert len(records) == 3
    assert any("b'alice' b'tea'" in line for line in records)
    (listed,) = defined(blocking, apache_kafka.bootstrap_servers)["offsets"].values()
    assert listed.offset == 0

    async def others() -> None:
        async with Client(apache_kafka.bootstrap_servers) as client:
            await defined(send, apache_kafka.bootstrap_servers)["look"](client)
            await defined(poll, apache_kafka.bootstrap_servers)["follow"](client)
            await topics.delete(client, "orders")

    asyncio.run(others())
    looked, *followed = capsys.readouterr().out.splitlines()
    assert "b3R0bGEt" in looked
    assert len(followed) <= 1
    assert isinstance(defined(security, apache_kafka.bootstrap_servers)["client"], Client)
