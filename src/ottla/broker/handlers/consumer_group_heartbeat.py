"""ConsumerGroupHeartbeat (68): a consumer joins its group, lives in it, follows its assignment, and leaves (KIP-848).

Versions 0 and 1: from 1 on the client makes its member id itself. Who names topics must be allowed to describe all of
them. An error is answered with its code and message alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 68
VERSIONS: Final = (0, 1)


def handle(node: Groups, request: Request) -> Answer:
    body = request.body
    check_group(node, request, Operation.READ, body.group_id)
    for name in body.subscribed_topic_names or ():
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return node.groups.answer(request, body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)
