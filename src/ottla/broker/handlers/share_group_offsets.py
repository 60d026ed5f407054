"""AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92): the offsets of an empty share group (KIP-932).

Version 0 of each. The first sets the start offsets of a group, or creates one with them; the second deletes the state
of topics, so that the group starts over with them. The client must be allowed to read the group, or to delete it, and
to read the topics. The response comes when the share coordinators have written the change and leaders have dropped
their state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import DelayedResponse, Request
from ottla.core.share.group.settings import check_served
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from ottla.wire.types.delete_share_group_offsets import DeleteShareGroupOffsetsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

__all__ = ["handle", "refuse"]

_ALTER: Final = 91
_NO_ID: Final = bytes(16)


def handle(node: ShareGroups, request: Request) -> DelayedResponse:
    """Pass the request to the group's coordinator, for the topics that the client may read."""
    body, later = request.body, DelayedResponse()
    check_served(node.groups.world)
    check_group(node, request, Operation.READ if request.api_key == _ALTER else Operation.DELETE, body.group_id)
    if not body.group_id:
        raise Reject(ErrorCode.INVALID_GROUP_ID)
    denied = {
        each.topic_name: _denied(node, request, each)
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


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401 - the answer of either API
    kind = AlterShareGroupOffsetsResponse if request.api_key == _ALTER else DeleteShareGroupOffsetsResponse
    return kind(error_code=code, error_message=message or ErrorCode(code).meaning)


def _denied(node: ShareGroups, request: Request, asked: Any) -> Any:  # noqa: ANN401
    """The part of the response for a topic that the client may not read."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if request.api_key != _ALTER:
        return DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
            asked.topic_name, _NO_ID, code, code.meaning
        )
    kind, topic = AlterShareGroupOffsetsResponse, node.image.topic(asked.topic_name)
    partitions = tuple(
        kind.AlterShareGroupOffsetsResponsePartition(each.partition_index, code, code.meaning)
        for each in asked.partitions
    )
    topic_id = _NO_ID if topic is None else topic.topic_id
    return kind.AlterShareGroupOffsetsResponseTopic(asked.topic_name, topic_id, partitions)


def _with_denied(body: Any, response: Any, denied: dict[str, Any]) -> Any:  # noqa: ANN401
    """The response with the refused topics, in the order of the request."""
    if response.error_code or not denied:
        return response
    topics = {each.topic_name: each for each in response.responses} | denied
    return replace(response, responses=tuple(topics[each.topic_name] for each in body.topics))
