"""A topology description that is being pushed while the coordinator of its group moves, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from tests.component.broker.description_plugins import Unreliable
from tests.component.broker.description_requests import description
from tests.component.broker.streams_requests import join, topology
from tests.unit.broker.coordinator_requests import INTERNAL, KIND_GROUP, again, coordinator
from tests.unit.broker.virtual_cluster import NODES, Cluster, cluster, until
from tests.unit.broker.virtual_node import run

GROUP, MEMBER, TOPIC = "slow", "A", "orders"
GROUPS_TOPIC = "__consumer_offsets"
SETTINGS = INTERNAL | {
    "group.streams.topology.description.plugin.class": f"{Unreliable.__module__}.{Unreliable.__qualname__}",
    "group.streams.initial.rebalance.delay.ms": "0",
}
AVAILABLE = 3


def plugin_of(it: Cluster, number: int) -> Unreliable:
    descriptions = it.nodes[number].descriptions
    assert descriptions is not None
    assert isinstance(descriptions._plugin, Unreliable)
    return descriptions._plugin


async def ask(it: Cluster, request: Any, version: int) -> Any:
    return await again(it, GROUP, KIND_GROUP, request, version, lambda answer: answer.error_code)


async def move_coordinators(it: Cluster, to: int) -> None:
    """Let another node lead the only partition of the groups' topic."""
    order = (to, *(number for number in NODES if number != to))
    kind, elect = AlterPartitionReassignmentsRequest, ElectLeadersRequest
    wanted = kind.ReassignableTopic(GROUPS_TOPIC, (kind.ReassignablePartition(0, order),))
    assert (await it.client(to).ask(kind(10_000, topics=(wanted,)), 1)).error_code == 0
    partitions = (elect.TopicPartitions(GROUPS_TOPIC, (0,)),)
    assert (await it.client(to).ask(elect(0, partitions, 10_000), 2)).error_code == 0
    await until(lambda: 0 in it.nodes[to].groups.shards)


async def describe(it: Cluster, number: int) -> Any:
    request = StreamsGroupDescribeRequest((GROUP,), include_topology_description=True)
    (row,) = (await it.client(number).ask(request, 1)).groups
    return row


def test_a_push_that_its_coordinator_does_not_outlive() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=SETTINGS) as it:
            await it.create_topic(TOPIC, (1, 2, 3))
            joined = await ask(it, join(GROUP, MEMBER, topology(TOPIC)), 1)
            assert joined.topology_description_required
            old = await coordinator(it, GROUP, KIND_GROUP)
            new = next(number for number in NODES if number != old)
            push = StreamsGroupTopologyDescriptionUpdateRequest(GROUP, MEMBER, 0, description(TOPIC))
            pushing = asyncio.ensure_future(it.client(old).ask(push, 0))
            await until(lambda: bool(plugin_of(it, old).calls))

            await move_coordinators(it, new)
            assert (await pushing).error_code == ErrorCode.NOT_COORDINATOR
            end_offset = it.nodes[new].replicas.leader(GROUPS_TOPIC, 0).log_end_offset

            # Late: the plugin of the old coordinator has it, and nobody notes it.
            plugin_of(it, old).may_end.set()
            await asyncio.sleep(1)
            assert plugin_of(it, old).holds(GROUP)
            assert it.nodes[new].replicas.leader(GROUPS_TOPIC, 0).log_end_offset == end_offset
            row = await describe(it, new)
            assert (row.topology_description, row.topology_description_status == AVAILABLE) == (None, False)

            # Nobody has to wait: the new coordinator asks for it with the next heartbeat.
            beat = StreamsGroupHeartbeatRequest(GROUP, MEMBER, joined.member_epoch, 0)
            answer = await ask(it, beat, 1)
            assert (answer.error_code, answer.topology_description_required) == (0, True)
            plugin_of(it, new).may_end.set()
            assert (await ask(it, push, 0)).error_code == 0
            assert (await describe(it, new)).topology_description_status == AVAILABLE

    run(scenario)
