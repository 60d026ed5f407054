"""ShareGroupHeartbeat (76): a consumer joins its share group, lives in it, hears what to fetch, and leaves (KIP-932).

Version 1. Who names topics must be allowed to describe all of them. What the request itself says is looked at before
its coordinator is looked for. An error is answered with its code and message alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.core.share.group.settings import check_served
from ottla.core.share.group.validation import check_member_id, check_request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 76
VERSIONS: Final = (1, 1)


def handle(node: Groups, request: Request) -> Answer:
    body = request.body
    check_served(node.groups.world)
    check_group(node, request, Operation.READ, body.group_id)
    check_member_id(body.member_id)
    for name in body.subscribed_topic_names or ():
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    check_request(body)
    return node.groups.answer(request, body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, error_message=message)
