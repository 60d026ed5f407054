"""ShareGroupHeartbeat (76): a consumer joins its share group, gets its assignment, and leaves (KIP-932).

Version 1. A client that names topics must be allowed to describe all of them. The request itself is validated before
its coordinator is looked up. A response with an error has only its code and message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.share.group.validation import check_heartbeat
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 76
VERSIONS: Final = (1, 1)


def handle(node: Groups, request: Request) -> Answer:
    check_heartbeat(request.body, node.groups.world, node.authorizer_of(request))
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, error_message=message)
