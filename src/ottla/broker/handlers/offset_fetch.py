"""OffsetFetch (9): the committed offsets of groups.

Versions 1 to 10: from 2 on all offsets of a group can be requested and there is an error of the group, from 7 on
offsets that an open transaction changes can be refused (require_stable), from 8 on there are several groups, from 9 on
members send their id and epoch, from 10 on topics are named by id. Each group is read at its own coordinator; only
offsets that are committed to `__consumer_offsets` are returned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.groups.offsets.fetch import group_error
from ottla.core.groups.offsets.requests import FetchOffsets
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestOffsetFetchRequestGroup,
    OffsetFetchRequestOffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseOffsetFetchResponseGroup,
    OffsetFetchResponseOffsetFetchResponsePartition,
    OffsetFetchResponseOffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 9
VERSIONS: Final = (1, 10)

_MANY_FROM: Final = 8

_AskedGroup = OffsetFetchRequestOffsetFetchRequestGroup
_AskedTopic = OffsetFetchRequestOffsetFetchRequestTopics
_Group = OffsetFetchResponseOffsetFetchResponseGroup
_Topic = OffsetFetchResponseOffsetFetchResponseTopic
_Partition = OffsetFetchResponseOffsetFetchResponsePartition


def handle(node: Groups, request: Request) -> Answer:
    groups = _groups(request)
    later = DelayedResponse()
    answers: dict[int, _Group] = {}

    def take(number: int, answer: _Group) -> None:
        answers[number] = answer
        if len(answers) == len(groups):
            later.complete(_response(request, [answers[each] for each in range(len(groups))]))

    for number, group in enumerate(groups):
        _ask(node, request, group, partial(take, number))
    return later if groups else OffsetFetchResponse()


def _ask(node: Groups, request: Request, group: _AskedGroup, done: partial[None]) -> None:
    def refuse_group(code: ErrorCode, message: str | None) -> _Group:
        return group_error(group, code, request.version)

    if node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        body = FetchOffsets(group, request.body.require_stable)
        node.groups.ask(request, group.group_id, body, done, refuse=refuse_group)
    else:
        done(refuse_group(ErrorCode.GROUP_AUTHORIZATION_FAILED, None))


def refuse(request: Request, code: int, message: str | None) -> OffsetFetchResponse:
    return _response(request, [group_error(group, code, request.version) for group in _groups(request)])


def _groups(request: Request) -> tuple[_AskedGroup, ...]:
    body: OffsetFetchRequest = request.body
    if request.version >= _MANY_FROM:
        return body.groups
    topics = None
    if body.topics is not None:
        topics = tuple(_AskedTopic(topic.name, partition_indexes=topic.partition_indexes) for topic in body.topics)
    return (_AskedGroup(body.group_id, topics=topics),)


def _response(request: Request, groups: list[_Group]) -> OffsetFetchResponse:
    if request.version >= _MANY_FROM:
        return OffsetFetchResponse(groups=tuple(groups))
    (group,) = groups
    topics = tuple(
        _Topic(
            topic.name,
            tuple(
                _Partition(
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.metadata,
                    each.error_code,
                )
                for each in topic.partitions
            ),
        )
        for topic in group.topics
    )
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
