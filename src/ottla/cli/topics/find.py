"""Finds topics by name, and the offsets of their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.cli.failure import EXIT_REFUSED, Failure, nearest
from ottla.wire import uuid_text

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.topics import PartitionDescription, TopicDescription

NO_ID = bytes(16)

Ends = dict["TopicPartition", tuple[int | None, int | None]]
"""Start and end offsets of partitions; None if unknown."""


async def found_topics(client: Client, names: Iterable[str]) -> list[TopicDescription]:
    """The topics, all if none is named; raises a Failure with the nearest name for one that does not exist."""
    from ottla.client.topics import is_unknown, try_describe

    found: list[TopicDescription] = []
    for name, outcome in sorted((await try_describe(client, *names)).items()):
        if isinstance(outcome, Exception):
            if not is_unknown(outcome):
                raise outcome
            raise no_topic(name, await client.all_topics())
        found.append(outcome)
    return found


def no_topic(name: str, known: Iterable[str]) -> Failure:
    advice = nearest(name, known) or "'ottla topics list' lists all topics"
    return Failure(f"topic '{name}' does not exist", advice, code=EXIT_REFUSED)


async def ends_of(client: Client, topics: Iterable[TopicDescription]) -> Ends:
    """Start and end offsets of every partition whose leader answers."""
    from ottla.client import TopicPartition
    from ottla.client.offsets import spans

    every = [(topic.name, each) for topic in topics for each in topic.partitions]
    return await spans(client, [TopicPartition(name, each.partition) for name, each in every if has_leader(each)])


def has_leader(partition: PartitionDescription) -> bool:
    return partition.leader >= 0


def is_under_replicated(partition: PartitionDescription) -> bool:
    return len(partition.isr) < len(partition.replicas)


def is_unhealthy(partition: PartitionDescription) -> bool:
    return not has_leader(partition) or is_under_replicated(partition) or bool(partition.offline_replicas)


def id_text(topic: TopicDescription) -> str | None:
    return None if topic.topic_id == NO_ID else uuid_text(topic.topic_id)
