"""A quorum whose voters are those of the configuration writes them into its log: kraft.version 0 becomes 1."""

from __future__ import annotations

from typing import Any

from ottla.broker.node import Node
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DescribeQuorumRequest, UpdateFeaturesRequest
from tests.unit.broker.virtual_node import Client, run, running

STATIC = {"controller.quorum.voters": "1@127.0.0.1:9093"}
UPGRADE, SAFE_DOWNGRADE = 1, 2


def update(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    kind = UpdateFeaturesRequest
    keys = tuple(kind.FeatureUpdateKey(name, level, upgrade_type=how) for name, level, how in updates)
    return kind(10_000, keys, validate_only)


def levels(node: Node) -> tuple[int, int]:
    return node.raft.quorum.control.kraft_version, node.image.features.get("group.version", 0)


async def voters(loop: VirtualLoop) -> list[tuple[int, bool]]:
    kind = DescribeQuorumRequest
    topic = kind.TopicData("__cluster_metadata", (kind.PartitionData(0),))
    reply: Any = await Client(loop, 9092).ask(kind((topic,)), 2)
    return [(each.replica_id, any(each.replica_directory_id)) for each in reply.topics[0].partitions[0].current_voters]


def test_the_upgrade() -> None:
    disk = VirtualDisk()

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, disk, settings=STATIC) as node:
            client = Client(loop, 9092)
            both = (("kraft.version", 1, UPGRADE), ("group.version", 0, SAFE_DOWNGRADE))
            assert levels(node) == (0, 1)
            assert (await client.ask(update(*both, validate_only=True), 2)).error_code == 0
            assert levels(node) == (0, 1)
            assert await voters(loop) == [(1, False)]
            assert (await client.ask(update(*both), 2)).error_code == 0
            assert levels(node) == (1, 0)
            assert await voters(loop) == [(1, True)]
            assert (await client.ask(update(*both), 2)).error_code == 0, "it is there"
            for validate_only in (True, False):
                reply = await client.ask(update(("kraft.version", 0, SAFE_DOWNGRADE), validate_only=validate_only), 2)
                assert ErrorCode(reply.error_code) is ErrorCode.INVALID_UPDATE_VERSION
            assert levels(node) == (1, 0)

    async def again(loop: VirtualLoop) -> None:
        async with running(loop, disk, settings=STATIC) as node:
            assert levels(node) == (1, 0)
            assert await voters(loop) == [(1, True)]

    run(scenario)
    run(again)
