"""ListOffsets (2): the offset of a timestamp, or of the start or end of a partition.

Versions 1 to 11. Special timestamps: -1 the end for the isolation level, -2 the start, -3 the record with the largest
timestamp (from 7), -4 the start on local disk (8), -5 the end in remote storage (9), -6 the first one not uploaded yet
(11); without remote storage the last two find nothing. A timestamp after the last record finds nothing, without error.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import led_replica, permitted_topic
from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata.fault import Reject
from ottla.log.errors import LogError
from ottla.log.read import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    OffsetAndTimestamp,
)
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 2
VERSIONS: Final = (1, 11)

_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED: Final = 1
_EPOCHS_FROM: Final = 4
_NOT_AVAILABLE_FROM: Final = 5
_NOTHING: Final = OffsetAndTimestamp(-1, -1, -1)

_Partition = ListOffsetsResponseListOffsetsPartitionResponse
_Topic = ListOffsetsResponseListOffsetsTopicResponse


def handle(node: Records, request: Request) -> ListOffsetsResponse:
    body: ListOffsetsRequest = request.body
    asked = Counter((topic.name, partition.partition_index) for topic in body.topics for partition in topic.partitions)
    topics = []
    for topic in body.topics:
        answers = {
            partition.partition_index: _answer(
                node, request, topic.name, partition, is_repeated=asked[topic.name, partition.partition_index] > 1
            )
            for partition in topic.partitions
        }
        topics.append(_Topic(topic.name, tuple(answers.values())))
    return ListOffsetsResponse(topics=tuple(topics))


def refuse(request: Request, code: int, message: str | None) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            _Topic(topic.name, tuple(_Partition(one.partition_index, code) for one in topic.partitions))
            for topic in request.body.topics
        )
    )


def _answer(
    node: Records, request: Request, topic: str, asked: ListOffsetsRequestListOffsetsPartition, *, is_repeated: bool
) -> _Partition:
    index = asked.partition_index
    if is_repeated:
        return _Partition(index, ErrorCode.INVALID_REQUEST)
    try:
        permitted_topic(node, request, Operation.DESCRIBE, topic)
        _check_timestamp(asked.timestamp, request.version)
        replica = led_replica(node.replicas, topic, index, asked.current_leader_epoch)
        found = _find(replica, asked.timestamp, request)
    except (Reject, LogError) as error:
        return _Partition(index, error.code)
    epoch = found.leader_epoch if request.version >= _EPOCHS_FROM else -1
    return _Partition(index, ErrorCode.NONE, timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch)


def _check_timestamp(timestamp: int, version: int) -> None:
    if timestamp < 0 and _SINCE.get(timestamp, version + 1) > version:
        raise Reject(ErrorCode.UNSUPPORTED_VERSION)


def _find(replica: Replica, timestamp: int, request: Request) -> OffsetAndTimestamp:
    body: ListOffsetsRequest = request.body
    if not replica.has_log:
        is_border = timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL)
        return OffsetAndTimestamp(0, -1, replica.leader_epoch) if is_border else _NOTHING
    log = replica.log
    end_offset = log.log_end_offset
    if body.replica_id < 0:
        end_offset = log.last_stable_offset if body.isolation_level == _READ_COMMITTED else log.high_watermark
    is_certain = body.replica_id >= 0 or replica.knows_committed
    if timestamp == LATEST:
        if not is_certain:
            raise _not_available(request)
        return OffsetAndTimestamp(end_offset, -1, replica.leader_epoch)
    found = log.offset_for_timestamp(timestamp)
    if found is None:
        return _NOTHING
    is_border = timestamp in (EARLIEST, EARLIEST_LOCAL)
    if is_border or found.offset < end_offset:
        return found
    if not is_certain:
        raise _not_available(request)
    return _NOTHING


def _not_available(request: Request) -> Reject:
    is_known = request.version >= _NOT_AVAILABLE_FROM
    return Reject(ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE)
