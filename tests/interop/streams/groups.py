"""What a streams group looks like from outside."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from ottla.client import Client
from ottla.client.streams import snapshot

WORDS = ("tea", "milk", "bread", "jam", "rice", "salt", "oil", "egg")


def lines(number: int) -> list[tuple[str, str]]:
    """A batch of input: every word some times."""
    return [(f"{number}-{each}", " ".join(WORDS[: 1 + (number + each) % len(WORDS)])) for each in range(40)]


def counts(batches: int) -> dict[str, str]:
    found = Counter(word for number in range(batches) for _, line in lines(number) for word in line.split())
    return {word: str(number) for word, number in found.items()}


def described(servers: str, group: str) -> Any:
    async def work() -> Any:
        async with Client(servers) as client:
            return (await snapshot(client, group)).group

    return asyncio.run(work())


def is_stable(servers: str, group: str, members: int) -> bool:
    row = described(servers, group)
    return row.group_state == "Stable" and len(row.members) == members
