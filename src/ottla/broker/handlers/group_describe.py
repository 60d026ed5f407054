"""ConsumerGroupDescribe (69) and ShareGroupDescribe (77): groups with their epochs and members.

Consumer groups (KIP-848) have versions 0 and 1, with each member's assignment and target; from 1 on with its protocol.
Share groups (KIP-932) have version 1, with each member's assignment. Groups that the client may not describe come
first. A group with a topic that the client may not describe is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from ottla.broker.network.authorization import group_operations
from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.network.scatter_gather import scatter_gather
from ottla.core.groups.consumer import settings as consumer_settings
from ottla.core.groups.consumer.group_description import DescribeConsumerGroup
from ottla.core.share.group import settings as share_settings
from ottla.core.share.group.group_description import DescribeShareGroup
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponse, ShareGroupDescribeResponseDescribedGroup

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups
    from ottla.core.coordinator.contract import World

__all__ = ["handle", "refuse"]


class _Kind(NamedTuple):
    """One type of group: the request to its coordinator, and the classes of the response."""

    check_served: Callable[[World], None]
    ask: Callable[[str], Any]
    response: type[Any]
    topics: Callable[[Any], set[str]]
    """The names of the topics in a described group."""

    def error(self, group_id: str, code: int, message: str | None = None) -> Any:  # noqa: ANN401
        return self.response.DescribedGroup(error_code=code, error_message=message, group_id=group_id)


def handle(node: Groups, request: Request) -> DelayedResponse:
    kind = _KINDS[request.api_key]
    kind.check_served(node.groups.world)
    may = {
        group_id: node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        for group_id in request.body.group_ids
    }

    def ask(group_id: str, done: Callable[[Any], None]) -> None:
        if not may[group_id]:
            done(kind.error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif not group_id:
            done(kind.error(group_id, ErrorCode.INVALID_GROUP_ID))
        else:
            node.groups.ask(
                request,
                group_id,
                kind.ask(group_id),
                done,
                refuse=lambda code, message: kind.error(group_id, code, message),
            )

    def finish(groups: list[Any]) -> Any:  # noqa: ANN401
        return kind.response(groups=tuple(_shown(node, request, kind, each) for each in groups))

    return scatter_gather(sorted(request.body.group_ids, key=lambda group_id: may[group_id]), ask, finish)


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    kind = _KINDS[request.api_key]
    return kind.response(groups=tuple(kind.error(group_id, code, message) for group_id in request.body.group_ids))


def _shown(node: Groups, request: Request, kind: _Kind, group: Any) -> Any:  # noqa: ANN401
    """The group as this client may see it."""
    if group.error_code:
        return group
    for name in sorted(kind.topics(group)):
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            message = "Members of the group have topics that you are not authorized to describe."
            return kind.error(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    if not request.body.include_authorized_operations:
        return group
    return replace(group, authorized_operations=group_operations(node, request, group.group_id))


def _consumer_topics(group: ConsumerGroupDescribeResponseDescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def _share_topics(group: ShareGroupDescribeResponseDescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


_KINDS: Final = {
    69: _Kind(consumer_settings.check_served, DescribeConsumerGroup, ConsumerGroupDescribeResponse, _consumer_topics),
    77: _Kind(share_settings.check_served, DescribeShareGroup, ShareGroupDescribeResponse, _share_topics),
}
"""By API key."""
