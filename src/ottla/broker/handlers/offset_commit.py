"""OffsetCommit (8): commit offsets of a group.

Versions 2 to 10: up to 4 the client may give a retention time; from 6 on an offset has the leader epoch of the record
before it, from 7 on static members send their instance id, from 9 on errors of groups have codes of their own, from 10
on topics are named by id. The response is sent when the offsets are committed to `__consumer_offsets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponseOffsetCommitResponsePartition,
    OffsetCommitResponseOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 8
VERSIONS: Final = (2, 10)

_Topic = OffsetCommitResponseOffsetCommitResponseTopic
_Partition = OffsetCommitResponseOffsetCommitResponsePartition


def handle(node: Groups, request: Request) -> Answer:
    body: OffsetCommitRequest = request.body
    if not node.authorize(request, Operation.READ, ResourceType.GROUP, body.group_id):
        return refuse(request, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    return node.groups.answer(request, body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> OffsetCommitResponse:
    body: OffsetCommitRequest = request.body
    return OffsetCommitResponse(
        topics=tuple(
            _Topic(
                topic.name, topic.topic_id, tuple(_Partition(each.partition_index, code) for each in topic.partitions)
            )
            for topic in body.topics
        )
    )
