"""What the APIs that describe groups of one kind have in common. No handler.

Groups that the asker must not describe come first. A group with a topic that he must not describe is refused as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ottla.broker.handlers.gathering import gather
from ottla.broker.network.authorization import group_operations
from ottla.broker.network.request import Later, Request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups


class Describing(NamedTuple):
    """One kind of group: the question that its coordinator is asked about a group, and the classes of the answer."""

    ask: Callable[[str], Any]
    response: type[Any]
    topics: Callable[[Any], set[str]]
    """The names of the topics that a described group shows."""

    def error(self, group_id: str, code: int, message: str | None = None) -> Any:  # noqa: ANN401
        return self.response.DescribedGroup(error_code=code, error_message=message, group_id=group_id)


def describe(node: Groups, request: Request, kind: Describing) -> Later:
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

    return gather(sorted(request.body.group_ids, key=lambda group_id: may[group_id]), ask, finish)


def refusal(request: Request, kind: Describing, code: int, message: str | None) -> Any:  # noqa: ANN401
    return kind.response(groups=tuple(kind.error(group_id, code, message) for group_id in request.body.group_ids))


def _shown(node: Groups, request: Request, kind: Describing, group: Any) -> Any:  # noqa: ANN401
    """The group as this asker may see it."""
    if group.error_code:
        return group
    for name in sorted(kind.topics(group)):
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            message = "Members of the group have topics that you are not allowed to describe."
            return kind.error(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    if not request.body.include_authorized_operations:
        return group
    return replace(group, authorized_operations=group_operations(node, request, group.group_id))
