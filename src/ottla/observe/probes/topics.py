"""The probe of topics: the leader and the in-sync replicas of each partition.

Only if replicas are out of sync, or a leader is missing, does it also ask for reassignments and eligible leaders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client import ClientError, TopicPartition
from ottla.client.metadata import Partition as KnownPartition
from ottla.client.metadata import Topic as KnownTopic
from ottla.client.reassignments import Reassignment, list_reassignments
from ottla.client.topics import TopicDescription, try_describe
from ottla.health.facts import Partition, Topic
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, probe_result
from ottla.wire import uuid_text

__all__ = ["probe_topics", "topic_fact"]

NO_ID: Final = bytes(16)
LEADERLESS_TOPICS: Final = 100
"""How many topics without a leader are described to find their eligible leader replicas."""


class PartitionDetails(NamedTuple):
    """Ongoing reassignments and eligible leader replicas."""

    moving: Mapping[TopicPartition, Reassignment] = {}
    eligible: Mapping[TopicPartition, tuple[int, ...]] = {}


async def probe_topics(ctx: ProbeContext) -> list[ProbeResult]:
    ctx.memory.topics = await ctx.client.all_topics()
    gone = ctx.memory.topics_present.take(ctx.now_ms, ctx.memory.topics, is_complete=True)
    details = await _probe_details(ctx)
    return [
        *gone,
        *(probe_result(name, topic_fact(topic, details)) for name, topic in sorted(ctx.memory.topics.items())),
    ]


async def _probe_details(ctx: ProbeContext) -> PartitionDetails:
    partitions = [each for topic in ctx.memory.topics.values() for each in topic.partitions.values()]
    moving = await _moving(ctx) if any(len(each.isr) < len(each.replicas) for each in partitions) else {}
    leaderless = [
        name for name, topic in ctx.memory.topics.items() if any(each.leader < 0 for each in topic.partitions.values())
    ]
    return PartitionDetails(moving, await _eligible(ctx, leaderless[:LEADERLESS_TOPICS]) if leaderless else {})


async def _moving(ctx: ProbeContext) -> Mapping[TopicPartition, Reassignment]:
    try:
        return await list_reassignments(ctx.client)
    except ClientError:
        return {}  # not authorized, or not supported by this broker


async def _eligible(ctx: ProbeContext, names: list[str]) -> Mapping[TopicPartition, tuple[int, ...]]:
    try:
        described = await try_describe(ctx.client, *names)
    except ClientError:
        return {}
    return {
        TopicPartition(name, each.partition): each.elr
        for name, topic in described.items()
        if isinstance(topic, TopicDescription)
        for each in topic.partitions
        if each.elr
    }


def topic_fact(topic: KnownTopic, details: PartitionDetails = PartitionDetails()) -> Topic:  # noqa: B008 - it cannot be changed
    return Topic(
        topic=topic.name,
        id=None if topic.topic_id == NO_ID else uuid_text(topic.topic_id),
        internal=topic.is_internal,
        partitions=tuple(_partition(topic.name, each, details) for _, each in sorted(topic.partitions.items())),
    )


def _partition(topic: str, each: KnownPartition, details: PartitionDetails) -> Partition:
    tp = TopicPartition(topic, each.partition)
    move = details.moving.get(tp)
    return Partition(
        partition=each.partition,
        leader=each.leader,
        epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        replicas=each.replicas,
        isr=each.isr,
        elr=details.eligible.get(tp),
        offline=each.offline_replicas,
        adding=() if move is None else move.adding,
    )
