"""OffsetForLeaderEpoch (23): the end offset of a leader epoch in this log, with which readers detect divergence.

Versions 2 to 4. The response has the largest known epoch at or below the requested one, and its end: the start of the
next epoch, or the end of the log. An unknown epoch gives -1 and -1, without error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import led_replica, topic_name
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.uuids import NO_ID
from ottla.log.errors import LogError
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 23
VERSIONS: Final = (2, 4)

_Partition = OffsetForLeaderEpochResponseEpochEndOffset
_Topic = OffsetForLeaderEpochResponseOffsetForLeaderTopicResult


def handle(node: Records, request: Request) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            _Topic(topic.topic, tuple(_answer(node, request, topic.topic, one) for one in topic.partitions))
            for topic in request.body.topics
        )
    )


def refuse(request: Request, code: int, message: str | None) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            _Topic(topic.topic, tuple(_Partition(code, one.partition) for one in topic.partitions))
            for topic in request.body.topics
        )
    )


def _check_access(node: Records, request: Request, topic: str) -> None:
    """Clients have a right to the topic, replicas one to the cluster."""
    if node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, topic):
        return
    if not node.authorize(request, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _answer(
    node: Records, request: Request, topic: str, asked: OffsetForLeaderEpochRequestOffsetForLeaderPartition
) -> _Partition:
    try:
        _check_access(node, request, topic)
        topic_name(node.image, topic, NO_ID, by_id=False)
        replica = led_replica(node.replicas, topic, asked.partition, asked.current_leader_epoch)
        if replica.has_log:
            log = replica.log
            epoch, end_offset = log.epochs.end_offset_for(asked.leader_epoch, log.log_end_offset)
        else:
            # Like a log with only the leader's epoch: older epochs end where it begins.
            is_known = 0 <= asked.leader_epoch <= replica.leader_epoch
            epoch, end_offset = (asked.leader_epoch, 0) if is_known else (-1, -1)
    except (Reject, LogError) as error:
        return _Partition(error.code, asked.partition)
    return _Partition(ErrorCode.NONE, asked.partition, epoch, end_offset)
