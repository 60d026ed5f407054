"""The plugins that come with ottla."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.topology_descriptions import (
    InMemoryPlugin,
    Sink,
    Subtopology,
    TopicPlugin,
    TopologyDescription,
    TopologyDescriptionPlugin,
)

ONE = TopologyDescription((Subtopology("0", (Sink("out", "one"),)),))
TWO = TopologyDescription((Subtopology("0", (Sink("out", "two"),)),))


class Table:
    """A topic that lives as long as a test, and counts what is written."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}
        self.writes = 0

    async def get(self, key: bytes) -> bytes | None:
        return self.held.get(key)

    async def put(self, key: bytes, value: bytes | None) -> None:
        self.writes += 1
        if value is None:
            self.held.pop(key)
        else:
            self.held[key] = value


class Broker:
    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.table = Table()

    async def open_table(self, topic: str) -> Table:
        assert topic == "__ottla_topology_descriptions"
        return self.table


Make = Callable[[], TopologyDescriptionPlugin]


@pytest.mark.parametrize("make", [InMemoryPlugin, TopicPlugin])
def test_the_last_description_is_held_at_its_epoch_alone(make: Make) -> None:
    async def run() -> None:
        plugin = make()
        await plugin.start(Broker())
        assert await plugin.get_topology("g", 0) is None
        await plugin.set_topology("g", 0, ONE)
        await plugin.set_topology("g", 0, ONE)
        await plugin.set_topology("h", 0, TWO)
        assert [await plugin.get_topology("g", epoch) for epoch in (-1, 0, 1)] == [None, ONE, None]
        await plugin.set_topology("g", 1, TWO)
        assert [await plugin.get_topology("g", epoch) for epoch in (0, 1)] == [None, TWO]
        await plugin.delete_topology("g")
        await plugin.delete_topology("g")
        assert [await plugin.get_topology(each, 1) for each in ("g", "nobody")] == [None, None]
        assert await plugin.get_topology("h", 0) == TWO
        await plugin.close()

    asyncio.run(run())


def test_what_the_topic_says_already_is_not_written_again() -> None:
    async def run() -> int:
        plugin, broker = TopicPlugin(), Broker()
        await plugin.start(broker)
        for _ in range(3):
            await plugin.set_topology("g", 0, ONE)
        for _ in range(3):
            await plugin.delete_topology("g")
        return broker.table.writes

    assert asyncio.run(run()) == 2


def test_another_instance_finds_what_the_topic_holds() -> None:
    async def run() -> TopologyDescription | None:
        broker = Broker()
        for plugin in (TopicPlugin(), TopicPlugin()):
            await plugin.start(broker)
            if not broker.table.writes:
                await plugin.set_topology("g", 0, ONE)
        return await plugin.get_topology("g", 0)

    assert asyncio.run(run()) == ONE
