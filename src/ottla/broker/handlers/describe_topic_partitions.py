"""DescribeTopicPartitions (75): topics and partitions page by page, with eligible leader replicas.

Version 0. Topics come in the order of their names, at most `max.request.partition.size.limit` partitions at a time; a
cursor says where the next page begins. An empty list means all topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.metadata import leader_of, missing_code, offline_replicas
from ottla.broker.network.authorization import topic_operations
from ottla.broker.network.request import Request
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import PartitionImage, TopicImage
from ottla.core.metadata.topic_names import INTERNAL_TOPICS
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 75
VERSIONS: Final = (0, 0)

_Cursor = DescribeTopicPartitionsResponseCursor
_Partition = DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition
_Topic = DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic


def handle(node: Cluster, request: Request) -> DescribeTopicPartitionsResponse:
    body: DescribeTopicPartitionsRequest = request.body
    names, hidden = _split_visible(node, request, _asked_names(node, body))
    limit = max(min(node.settings["max.request.partition.size.limit"], body.response_partition_limit), 1)
    topics: list[_Topic] = []
    for name in names:
        if limit == 0:
            return _response([*topics, *hidden], _Cursor(name, 0))
        start = body.cursor.partition_index if body.cursor is not None and name == body.cursor.topic_name else 0
        topic = node.image.topic(name)
        if topic is None:
            operations = topic_operations(node, request, name)
            topics.append(
                _Topic(
                    missing_code(name),
                    name,
                    is_internal=name in INTERNAL_TOPICS,
                    topic_authorized_operations=operations,
                )
            )
            continue
        numbers = [number for number in sorted(topic.partitions) if number >= start]
        topics.append(_described(node, request, topic, numbers[:limit]))
        if len(numbers) > limit:
            return _response([*topics, *hidden], _Cursor(name, numbers[limit]))
        limit -= len(numbers)
    return _response([*topics, *hidden], None)


def refuse(request: Request, code: int, message: str | None) -> DescribeTopicPartitionsResponse:
    return _response([_Topic(code, topic.name) for topic in request.body.topics], None)


def _response(topics: list[_Topic], cursor: _Cursor | None) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _asked_names(node: Cluster, body: DescribeTopicPartitionsRequest) -> list[str]:
    """The topics from the cursor on, in order."""
    start = body.cursor.topic_name if body.cursor is not None else ""
    asked = {topic.name for topic in body.topics} or set(node.image.topics_by_name)
    names = sorted(name for name in asked if name >= start)
    if body.cursor is not None:
        if body.topics and start not in names:
            raise Reject(ErrorCode.INVALID_REQUEST, f"The cursor's topic '{start}' is not among the requested topics.")
        if body.cursor.partition_index < 0:
            raise Reject(ErrorCode.INVALID_REQUEST, "The cursor's partition is negative.")
    return names


def _split_visible(node: Cluster, request: Request, names: list[str]) -> tuple[list[str], list[_Topic]]:
    """The topics that the client may describe, and errors for those that it named and may not."""
    visible: list[str] = []
    denied: list[str] = []
    for name in names:
        is_visible = node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name)
        (visible if is_visible else denied).append(name)
    hidden = [_Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) for name in denied] if request.body.topics else []
    return visible, hidden


def _described(node: Cluster, request: Request, topic: TopicImage, numbers: list[int]) -> _Topic:
    return _Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(node, request, topic.partitions[number]) for number in numbers),
        topic_authorized_operations=topic_operations(node, request, topic.name),
    )


def _partition(node: Cluster, request: Request, partition: PartitionImage) -> _Partition:
    listener = request.connection.peer.listener
    leader_id, code = leader_of(node, partition, listener)
    return _Partition(
        error_code=code,
        partition_index=partition.partition_id,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=offline_replicas(node, partition, listener),
    )
