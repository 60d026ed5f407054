"""Topics: who leads each partition, and which copies are in sync.

Only where something is missing a second question is asked: which replicas are being added, and who could lead.
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
from ottla.observe.memory import Moment
from ottla.observe.sighting import Sighting, sight
from ottla.wire import uuid_text

__all__ = ["look_at_topics", "topic_fact"]

NO_ID: Final = bytes(16)
LEADERLESS_TOPICS: Final = 100
"""Of so many topics without a leader it is asked who could lead."""


class Closer(NamedTuple):
    """What a closer look has shown."""

    moving: Mapping[TopicPartition, Reassignment] = {}
    eligible: Mapping[TopicPartition, tuple[int, ...]] = {}


async def look_at_topics(at: Moment) -> list[Sighting]:
    at.memory.topics = await at.client.all_topics()
    gone = at.memory.topics_present.take(at.now_ms, at.memory.topics, is_complete=True)
    closer = await _look_closer(at)
    return [*gone, *(sight(name, topic_fact(topic, closer)) for name, topic in sorted(at.memory.topics.items()))]


async def _look_closer(at: Moment) -> Closer:
    partitions = [each for topic in at.memory.topics.values() for each in topic.partitions.values()]
    moving = await _moving(at) if any(len(each.isr) < len(each.replicas) for each in partitions) else {}
    leaderless = [
        name for name, topic in at.memory.topics.items() if any(each.leader < 0 for each in topic.partitions.values())
    ]
    return Closer(moving, await _eligible(at, leaderless[:LEADERLESS_TOPICS]) if leaderless else {})


async def _moving(at: Moment) -> Mapping[TopicPartition, Reassignment]:
    try:
        return await list_reassignments(at.client)
    except ClientError:
        return {}  # it may not be asked, or not of this broker: then nothing is known of reassignments


async def _eligible(at: Moment, names: list[str]) -> Mapping[TopicPartition, tuple[int, ...]]:
    try:
        described = await try_describe(at.client, *names)
    except ClientError:
        return {}
    return {
        TopicPartition(name, each.partition): each.elr
        for name, topic in described.items()
        if isinstance(topic, TopicDescription)
        for each in topic.partitions
        if each.elr
    }


def topic_fact(topic: KnownTopic, closer: Closer = Closer()) -> Topic:  # noqa: B008 - it cannot be changed
    return Topic(
        topic=topic.name,
        id=None if topic.topic_id == NO_ID else uuid_text(topic.topic_id),
        internal=topic.is_internal,
        partitions=tuple(_partition(topic.name, each, closer) for _, each in sorted(topic.partitions.items())),
    )


def _partition(topic: str, each: KnownPartition, closer: Closer) -> Partition:
    place = TopicPartition(topic, each.partition)
    move = closer.moving.get(place)
    return Partition(
        partition=each.partition,
        leader=each.leader,
        epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        replicas=each.replicas,
        isr=each.isr,
        elr=closer.eligible.get(place),
        offline=each.offline_replicas,
        adding=() if move is None else move.adding,
    )
