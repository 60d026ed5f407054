"""The topics that a request names, and whether the client may have to do with them.

Asked in Kafka's order: a topic id that is not known, no access to the topic, a topic that does not exist. Each is the
answer for all of the topic's partitions; a partition that does not exist has an answer of its own. The rest of the
request goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.coordinator.contract import Context
from ottla.core.groups.offsets.records import NO_TOPIC_ID
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode

__all__ = ["Target", "target_by_id", "target_by_name"]

_NONE = ErrorCode.NONE


class Target(NamedTuple):
    """A topic as far as a request has to do with it."""

    name: str
    error: ErrorCode
    partition_count: int
    topic_id: bytes = NO_TOPIC_ID

    def error_of(self, partition: int) -> ErrorCode:
        if self.error is not _NONE or 0 <= partition < self.partition_count:
            return self.error
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def target_by_name(name: str, operation: Operation, context: Context) -> Target:
    if not context.authorize(operation, ResourceType.TOPIC, name):
        return Target(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    topic = context.world.topics.by_name(name)
    if topic is None:
        return Target(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    return Target(name, _NONE, topic.partition_count, topic.topic_id)


def target_by_id(topic_id: bytes, operation: Operation, context: Context) -> Target:
    topic = context.world.topics.by_id(topic_id)
    if topic is None:
        return Target("", ErrorCode.UNKNOWN_TOPIC_ID, 0)
    if not context.authorize(operation, ResourceType.TOPIC, topic.name):
        return Target(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    return Target(topic.name, _NONE, topic.partition_count, topic_id)
