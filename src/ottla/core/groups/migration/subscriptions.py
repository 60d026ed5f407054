"""What members of the classic protocol say and are told, as values: subscriptions and assignments of consumers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla import wire
from ottla.core.coordinator.contract import Topics
from ottla.core.groups.classic.subscriptions import version_of
from ottla.wire import WireError
from ottla.wire.keyed import decode_versioned, encode_framed
from ottla.wire.types.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

__all__ = ["OwnedPartitions", "encode_assignment", "owned_of", "partitions_of", "user_data_of"]

ASSIGNMENT: Final = "ConsumerProtocolAssignment"


class OwnedPartitions(NamedTuple):
    """What a member reports to own of a topic."""

    topic_id: bytes
    partitions: Sequence[int]


def owned_of(subscription: ConsumerProtocolSubscription, topics: Topics) -> list[OwnedPartitions]:
    """What the member owns, of topics that exist."""
    owned = [(topics.by_name(each.topic), each.partitions) for each in subscription.owned_partitions]
    return [OwnedPartitions(topic.topic_id, partitions) for topic, partitions in owned if topic is not None]


def _assignment(data: bytes) -> ConsumerProtocolAssignment:
    """WireError if it is none. A newer version is read as the newest known one."""
    low, high = wire.versions(ASSIGNMENT)[0], wire.versions(ASSIGNMENT)[-1]
    version = version_of(data)
    if version is None or version < low:
        raise WireError(ASSIGNMENT, 0, "there is no version before it")
    if version > high:
        data = high.to_bytes(2, "big") + data[2:]
    message: ConsumerProtocolAssignment = decode_versioned(ASSIGNMENT, data).message
    return message


def user_data_of(data: bytes) -> bytes:
    """What an assignor of the client's own has put into an assignment."""
    return bytes(_assignment(data).user_data or b"")


def partitions_of(data: bytes, topics: Topics) -> dict[bytes, tuple[int, ...]]:
    """The partitions of an assignment, of topics that exist, by topic id."""
    found = [(topics.by_name(each.topic), each.partitions) for each in _assignment(data).assigned_partitions]
    return {topic.topic_id: tuple(sorted(each)) for topic, each in found if topic is not None and each}


def encode_assignment(partitions: Mapping[bytes, Iterable[int]], topics: Topics, version: int) -> bytes:
    """An assignment in the version that the member's own subscription has. Topics that are gone are left out."""
    found = [(topic.name, topic_id) for topic_id in partitions if (topic := topics.by_id(topic_id)) is not None]
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            ConsumerProtocolAssignmentTopicPartition(name, tuple(sorted(partitions[topic_id])))
            for name, topic_id in sorted(found)
        ),
        user_data=None,
    )
    return encode_framed(message, min(version, wire.versions(ASSIGNMENT)[-1]))
