"""How much disk the partitions of topics take."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.client import Client, always
from ottla.client.errors import ClientError
from ottla.client.metadata import TopicPartition
from ottla.client.topics import TopicDescription
from ottla.wire.types.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsRequestDescribableLogDirTopic,
    DescribeLogDirsResponse,
)

__all__ = ["leader_sizes"]


async def leader_sizes(client: Client, topics: Iterable[TopicDescription]) -> dict[TopicPartition, int]:
    """The bytes of each partition as its leader keeps them. Those of leaders that do not tell are missing."""
    led: dict[int, dict[str, list[int]]] = {}
    for topic in topics:
        for each in topic.partitions:
            if each.leader >= 0:
                led.setdefault(each.leader, {}).setdefault(topic.name, []).append(each.partition)
    found: dict[TopicPartition, int] = {}
    for sizes in await client.together(_sizes_at(client, node_id, wanted) for node_id, wanted in led.items()):
        found |= sizes
    return found


async def _sizes_at(client: Client, node_id: int, wanted: dict[str, list[int]]) -> dict[TopicPartition, int]:
    request = DescribeLogDirsRequest(
        topics=tuple(
            DescribeLogDirsRequestDescribableLogDirTopic(name, tuple(partitions)) for name, partitions in wanted.items()
        )
    )
    try:
        answer = await client.ask("DescribeLogDirs", always(request), broker=node_id)
    except ClientError:
        return {}
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_size
        for directory in answer.of(DescribeLogDirsResponse).results
        for topic in directory.topics
        for each in topic.partitions
        if not each.is_future_key
    }
