"""ConsumerGroupDescribe (69): consumer groups with their epochs, members, and what each has and is to have (KIP-848).

Versions 0 and 1: from 1 on it is told which protocol a member speaks. Groups that the asker must not describe come
first. A group with a topic that he must not describe is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.handlers.access import group_operations
from ottla.broker.handlers.gathering import gather
from ottla.broker.request import Later, Request
from ottla.groups.consumer.describing import DescribeConsumerGroup
from ottla.groups.consumer.settings import check_served
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

API_KEY: Final = 69
VERSIONS: Final = (0, 1)

_Group = ConsumerGroupDescribeResponseDescribedGroup


def handle(node: Node, request: Request) -> Later:
    check_served(node.groups.world)
    may = {
        group_id: node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        for group_id in request.body.group_ids
    }

    def finish(groups: list[_Group]) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(groups=tuple(_shown(node, request, each) for each in groups))

    def ask(group_id: str, done: Callable[[_Group], None]) -> None:
        if not may[group_id]:
            done(_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif not group_id:
            done(_error(group_id, ErrorCode.INVALID_GROUP_ID))
        else:
            body = DescribeConsumerGroup(group_id)
            node.groups.ask(request, group_id, body, done, refuse=lambda code, message: _error(group_id, code, message))

    return gather(sorted(request.body.group_ids, key=lambda group_id: may[group_id]), ask, finish)


def refuse(request: Request, code: int, message: str | None) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=tuple(_error(group_id, code, message) for group_id in request.body.group_ids)
    )


def _error(group_id: str, code: int, message: str | None = None) -> _Group:
    return _Group(error_code=code, error_message=message, group_id=group_id)


def _shown(node: Node, request: Request, group: _Group) -> _Group:
    """The group as this asker may see it."""
    if group.error_code:
        return group
    for name in sorted(_topics(group)):
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            message = "Members of the group have topics that you are not allowed to describe."
            return _error(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    if not request.body.include_authorized_operations:
        return group
    return replace(group, authorized_operations=group_operations(node, request, group.group_id))


def _topics(group: _Group) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
