"""How much disk the partitions of topics take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.client import Client, always
from ottla.client.errors import ClientError, check
from ottla.client.leaders import Outcomes, by_topic
from ottla.client.metadata import TopicPartition
from ottla.client.topics import TopicDescription
from ottla.wire.types.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsRequestDescribableLogDirTopic,
    DescribeLogDirsResponse,
)

__all__ = ["leader_sizes", "try_leader_sizes"]


async def leader_sizes(client: Client, topics: Iterable[TopicDescription]) -> dict[TopicPartition, int]:
    """The bytes of each partition as its leader keeps them. Those of leaders that do not tell are missing."""
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in topics
        for each in topic.partitions
        if each.leader >= 0
    }
    outcomes = await try_leader_sizes(client, leaders)
    return {at: outcome for at, outcome in outcomes.items() if not isinstance(outcome, ClientError)}


async def try_leader_sizes(client: Client, leaders: Mapping[TopicPartition, int]) -> Outcomes[int]:
    """The same of partitions by the ids of their leaders, or why a leader does not tell."""
    led: dict[int, list[TopicPartition]] = {}
    for at, leader in leaders.items():
        led.setdefault(leader, []).append(at)
    found: dict[TopicPartition, int | ClientError] = {}
    for outcomes in await client.together(_sizes_at(client, node_id, wanted) for node_id, wanted in led.items()):
        found |= outcomes
    return found


async def _sizes_at(client: Client, node_id: int, wanted: list[TopicPartition]) -> Outcomes[int]:
    request = DescribeLogDirsRequest(
        topics=tuple(
            DescribeLogDirsRequestDescribableLogDirTopic(name, tuple(each.partition for each in partitions))
            for name, partitions in by_topic(wanted).items()
        )
    )
    try:
        answer = await client.ask("DescribeLogDirs", always(request), broker=node_id)
        body = answer.of(DescribeLogDirsResponse)
        check(answer.peer, "DescribeLogDirs", body.error_code)
    except ClientError as error:
        return dict.fromkeys(wanted, error)
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_size
        for directory in body.results
        for topic in directory.topics
        for each in topic.partitions
        if not each.is_future_key
    }
