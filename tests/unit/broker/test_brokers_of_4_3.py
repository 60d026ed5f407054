"""While a broker of Apache Kafka 4.3 is registered, what Kafka 4.4 has beyond it for streams groups is off.

A coordinator may move to that broker, and members that have been promised more would be left alone there.
"""

from __future__ import annotations

import pytest

from ottla.broker.node import Node
from ottla.core.groups.streams.settings import read_settings
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.types import UnregisterBrokerRequest
from ottla.wire.types.api_versions import ApiVersionsRequest
from tests.unit.broker.played_broker import another_broker
from tests.unit.broker.virtual_node import Client, run, running

HEARTBEAT, DESCRIBE, DESCRIPTION = 88, 89, 93
OF_4_4 = {HEARTBEAT: (0, 1), DESCRIBE: (0, 1), DESCRIPTION: (0, 0)}
OF_4_3 = {HEARTBEAT: (0, 0), DESCRIBE: (0, 0)}
SETTINGS = {
    "group.streams.assignors": "highly_available,sticky",
    "group.streams.topology.description.plugin.class": "ottla.topology_descriptions.InMemoryPlugin",
}


async def shown(loop: VirtualLoop) -> dict[int, tuple[int, int]]:
    answer = await Client(loop, 9092).ask(ApiVersionsRequest("test", "1"), 4)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    return {key: ranges[key] for key in OF_4_4 if key in ranges}


def streams_settings(node: Node) -> tuple[str, bool]:
    settings = read_settings(node.world, "app")
    return settings.assignor_name, settings.has_description_plugin


@pytest.mark.parametrize("is_ottla", [True, False], ids=["ottla", "apache"])
def test_a_second_broker(is_ottla: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), settings=SETTINGS) as node:
            assert await shown(loop) == OF_4_4
            assert streams_settings(node) == ("highly_available", True)
            before = node.world.settings_version
            await another_broker(loop, node, is_ottla=is_ottla)
            assert await shown(loop) == (OF_4_4 if is_ottla else OF_4_3)
            assert streams_settings(node) == (("highly_available", True) if is_ottla else ("sticky", False))
            assert node.world.settings_version > before, "groups read their settings again"
            assert (await Client(loop, 9092).ask(UnregisterBrokerRequest(2), 0)).error_code == 0
            assert await shown(loop) == OF_4_4
            assert streams_settings(node) == ("highly_available", True)

    run(scenario)
