"""Topics: who leads each partition, and which copies are in sync."""

from __future__ import annotations

from ottla.client.metadata import Partition as KnownPartition
from ottla.client.metadata import Topic as KnownTopic
from ottla.health.facts import Partition, Topic
from ottla.observe.memory import Moment
from ottla.observe.sighting import Sighting, sight
from ottla.wire import uuid_text

__all__ = ["look_at_topics", "topic_fact"]

NO_ID = bytes(16)


async def look_at_topics(at: Moment) -> list[Sighting]:
    at.memory.topics = await at.client.all_topics()
    gone = at.memory.topics_present.take(at.now_ms, at.memory.topics, is_complete=True)
    return [*gone, *(sight(name, topic_fact(topic)) for name, topic in sorted(at.memory.topics.items()))]


def topic_fact(topic: KnownTopic) -> Topic:
    return Topic(
        topic=topic.name,
        id=None if topic.topic_id == NO_ID else uuid_text(topic.topic_id),
        internal=topic.is_internal,
        partitions=tuple(_partition(each) for _, each in sorted(topic.partitions.items())),
    )


def _partition(each: KnownPartition) -> Partition:
    return Partition(
        partition=each.partition,
        leader=each.leader,
        epoch=None if each.leader_epoch < 0 else each.leader_epoch,
        replicas=each.replicas,
        isr=each.isr,
        offline=each.offline_replicas,
    )
