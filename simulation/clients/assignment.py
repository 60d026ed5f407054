"""The assignor of simulated classic groups, and the encoding of subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.wire.keyed import decode_versioned, encode_framed
from ottla.wire.types.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from simulation.topics import VirtualTopics

__all__ = ["Partitions", "assign", "read_assignment", "subscribed_topics", "write_assignment", "write_subscription"]

Partitions = frozenset[tuple[str, int]]
"""Topic and partition."""

_VERSION: Final = 1


def write_subscription(topics: Iterable[str], owned: Partitions) -> bytes:
    entry = ConsumerProtocolSubscription.TopicPartition
    grouped = tuple(entry(topic=topic, partitions=tuple(each)) for topic, each in _grouped(owned).items())
    return encode_framed(ConsumerProtocolSubscription(topics=tuple(topics), owned_partitions=grouped), _VERSION)


def write_assignment(partitions: Partitions) -> bytes:
    entry = ConsumerProtocolAssignment.TopicPartition
    grouped = tuple(entry(topic=topic, partitions=tuple(each)) for topic, each in _grouped(partitions).items())
    return encode_framed(ConsumerProtocolAssignment(assigned_partitions=grouped), _VERSION)


def read_assignment(data: bytes) -> Partitions:
    if not data:
        return frozenset()
    message = decode_versioned("ConsumerProtocolAssignment", data).message
    return frozenset((each.topic, partition) for each in message.assigned_partitions for partition in each.partitions)


def subscribed_topics(subscriptions: Iterable[bytes]) -> list[str]:
    """All subscribed topics of a group."""
    read = [decode_versioned("ConsumerProtocolSubscription", data).message for data in subscriptions]
    return sorted({topic for each in read for topic in each.topics})


def _grouped(partitions: Partitions) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def assign(subscriptions: Mapping[str, bytes], topics: VirtualTopics, *, cooperative: bool) -> dict[str, Partitions]:
    """Assign the partitions in turn. Members keep what they have, up to an even share.

    A cooperative leader leaves out partitions of another member: they are revoked now and assigned next time.
    """
    read = {
        name: decode_versioned("ConsumerProtocolSubscription", data).message for name, data in subscriptions.items()
    }
    owners = _owners(read) if cooperative else {}
    found: dict[str, set[tuple[str, int]]] = {name: set() for name in read}
    for topic_name in sorted({topic for each in read.values() for topic in each.topics}):
        topic = topics.by_name(topic_name)
        members = sorted(name for name, each in read.items() if topic_name in each.topics)
        for partition in range(topic.partition_count if topic is not None else 0):
            wanted = members[partition % len(members)]
            owner = owners.get((topic_name, partition))
            if owner is None or owner == wanted:
                found[wanted].add((topic_name, partition))
    return {name: frozenset(each) for name, each in found.items()}


def _owners(read: Mapping[str, ConsumerProtocolSubscription]) -> dict[tuple[str, int], str]:
    return {
        (each.topic, partition): name
        for name, subscription in read.items()
        for each in subscription.owned_partitions
        for partition in each.partitions
    }
