"""What the two APIs that change the offsets of share groups have in common. No handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Later, Request
from ottla.core.share.group.settings import check_served
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

Response = TypeVar("Response")


def change_offsets(
    node: ShareGroups,
    request: Request,
    operation: Operation,
    deny: Callable[[Any], Any],
    refuse: Callable[[Request, int, str | None], Response],
) -> Later:
    """Have a share group's coordinator do what is asked, for the topics that the asker may read.

    `operation` is what he must be allowed to do with the group; `deny` makes the part of the answer for another topic.
    """
    body, later = request.body, Later()
    check_served(node.groups.world)
    check_group(node, request, operation, body.group_id)
    if not body.group_id:
        raise Reject(ErrorCode.INVALID_GROUP_ID)
    denied = {
        each.topic_name: deny(each)
        for each in body.topics
        if not node.authorize(request, Operation.READ, ResourceType.TOPIC, each.topic_name)
    }

    def done(response: Any) -> None:  # noqa: ANN401
        later.complete(_with_denied(body, response, denied))

    node.groups.ask(
        request,
        body.group_id,
        replace(body, topics=tuple(each for each in body.topics if each.topic_name not in denied)),
        done,
        refuse=lambda code, message: refuse(request, code, message),
    )
    return later


def _with_denied(body: Any, response: Any, denied: dict[str, Any]) -> Any:  # noqa: ANN401
    """In the order of the request."""
    if response.error_code or not denied:
        return response
    topics = {each.topic_name: each for each in response.responses} | denied
    return replace(response, responses=tuple(topics[each.topic_name] for each in body.topics))
