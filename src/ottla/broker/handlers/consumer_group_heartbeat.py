"""ConsumerGroupHeartbeat (68): a consumer joins its group, gets its assignment, and leaves (KIP-848).

Versions 0 and 1: from 1 on the client generates its member id. A client that names topics must be allowed to describe
all of them. A response with an error has only its code and message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.groups.consumer.validation import check_heartbeat
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 68
VERSIONS: Final = (0, 1)


def handle(node: Groups, request: Request) -> Answer:
    check_heartbeat(request.body, node.groups.world, node.authorizer_of(request))
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)
