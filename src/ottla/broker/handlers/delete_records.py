"""DeleteRecords (21): delete the records of a partition before an offset.

Versions 0 to 2. -1 means the high watermark; an offset at or below the start changes nothing. Retention deletes files
when whole segments are below the start. Internal topics and topics that are only compacted are refused.

The answer comes when the log starts there on all replicas whose brokers are alive, or when the timeout is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.replicas.lookup import permitted_topic
from ottla.broker.replicas.replicas import Replica
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


def handle(node: Records, request: Request) -> Answer:
    return _Deletion(node, request).begin()


class _Deletion:
    """One request, and what it still waits for."""

    def __init__(self, node: Records, request: Request) -> None:
        self._node = node
        self._request = request
        self._waiting: dict[tuple[str, int], tuple[Replica, int, int]] = {}
        """Replica, leader epoch and the log start that is wanted."""
        self._answers: dict[tuple[str, int], _Partition] = {}
        self._later = DelayedResponse()

    def begin(self) -> Answer:
        for topic in self._request.body.topics:
            for one in topic.partitions:
                self._delete(topic.name, one.partition_index, one.offset)
        if self._settle(expired=False):
            return self._response()
        keys = [replica.topic_partition for replica, _, _ in self._waiting.values()]
        deadline = self._node.clock.monotonic_ms() + max(self._request.body.timeout_ms, 0)
        if not self._node.purgatory.park(DelayedOperation(self._attempt, keys, deadline)):
            self._attempt(True)
        return self._later

    def _delete(self, topic: str, index: int, offset: int) -> None:
        try:
            permitted_topic(self._node, self._request, Operation.DELETE, topic)
            replica, start_offset = _delete(self._node, topic, index, offset)
        except (Reject, LogError) as error:
            self._answers[topic, index] = _Partition(index, _NO_WATERMARK, error.code)
        else:
            self._waiting[topic, index] = (replica, replica.leader_epoch, start_offset)

    def _attempt(self, expired: bool) -> bool:
        if not self._settle(expired=expired):
            return False
        self._later.complete(self._response())
        return True

    def _settle(self, *, expired: bool) -> bool:
        """Answer for the partitions that are done; returns whether none is left to wait for."""
        for key, (replica, leader_epoch, start_offset) in list(self._waiting.items()):
            low_watermark, code = self._node.replicas.low_watermark(replica), ErrorCode.NONE
            if not replica.is_leader or replica.leader_epoch != leader_epoch:
                low_watermark, code = _NO_WATERMARK, ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif replica.is_offline:
                low_watermark, code = _NO_WATERMARK, ErrorCode.KAFKA_STORAGE_ERROR
            elif low_watermark < start_offset:
                if not expired:
                    continue
                code = ErrorCode.REQUEST_TIMED_OUT
            self._answers[key] = _Partition(key[1], low_watermark, code)
            del self._waiting[key]
        return not self._waiting

    def _response(self) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=tuple(
                _Topic(topic.name, tuple(self._answers[topic.name, one.partition_index] for one in topic.partitions))
                for topic in self._request.body.topics
            )
        )


def refuse(request: Request, code: int, message: str | None) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            _Topic(topic.name, tuple(_Partition(one.partition_index, _NO_WATERMARK, code) for one in topic.partitions))
            for topic in request.body.topics
        )
    )


def _delete(node: Records, topic: str, index: int, offset: int) -> tuple[Replica, int]:
    """Delete records of the leader's own log; gives where it starts now."""
    if topic in INTERNAL_TOPICS:
        raise Reject(ErrorCode.INVALID_TOPIC_EXCEPTION)
    replica = node.replicas.leader(topic, index)
    config = node.settings.log_config(topic)
    if config.is_compacted and not config.is_deleted:
        raise Reject(ErrorCode.POLICY_VIOLATION)
    if not replica.has_log:
        if offset not in _ALL:
            raise OffsetOutOfRangeError("the partition is empty")
        return replica, 0
    start_offset = replica.log.delete_records(offset)
    node.replicas.look_again(replica)
    node.replicas.wake(replica.topic_partition)
    return replica, start_offset
