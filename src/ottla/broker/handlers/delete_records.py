"""DeleteRecords (21): delete the records of a partition before an offset.

Versions 0 to 2. -1 means the high watermark; an offset at or below the start changes nothing. Retention deletes files
when whole segments are below the start. Internal topics and topics that are only compacted are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import permitted_topic
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_names import INTERNAL_TOPICS
from ottla.log.errors import LogError, OffsetOutOfRangeError
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_records import (
    DeleteRecordsResponse,
    DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 21
VERSIONS: Final = (0, 2)

_ALL: Final = (-1, 0)
_NO_WATERMARK: Final = -1

_Partition = DeleteRecordsResponseDeleteRecordsPartitionResult
_Topic = DeleteRecordsResponseDeleteRecordsTopicResult


def handle(node: Records, request: Request) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            _Topic(
                topic.name,
                tuple(_answer(node, request, topic.name, one.partition_index, one.offset) for one in topic.partitions),
            )
            for topic in request.body.topics
        )
    )


def refuse(request: Request, code: int, message: str | None) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            _Topic(topic.name, tuple(_Partition(one.partition_index, _NO_WATERMARK, code) for one in topic.partitions))
            for topic in request.body.topics
        )
    )


def _answer(node: Records, request: Request, topic: str, index: int, offset: int) -> _Partition:
    try:
        permitted_topic(node, request, Operation.DELETE, topic)
        return _Partition(index, _delete(node, topic, index, offset))
    except (Reject, LogError) as error:
        return _Partition(index, _NO_WATERMARK, error.code)


def _delete(node: Records, topic: str, index: int, offset: int) -> int:
    if topic in INTERNAL_TOPICS:
        raise Reject(ErrorCode.INVALID_TOPIC_EXCEPTION)
    replica = node.replicas.leader(topic, index)
    config = node.settings.log_config(topic)
    if config.is_compacted and not config.is_deleted:
        raise Reject(ErrorCode.POLICY_VIOLATION)
    if not replica.has_log:
        if offset not in _ALL:
            raise OffsetOutOfRangeError("the partition is empty")
        return 0
    start = replica.log.delete_records(offset)
    node.replicas.wake(replica.topic_partition)
    return start
