"""StreamsGroupHeartbeat (88): a thread of a Kafka Streams application joins its group, stays in it or leaves it
(KIP-1071).

Versions 0 and 1: from 1 on a member may be told that it lacks client tags, and may be asked to describe its topology
(KIP-1331). Internal topics that the application needs are created before the response, which waits a second for them.
A client that names topics must be allowed to describe all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.groups.streams.validation import check_heartbeat
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 88
VERSIONS: Final = (0, 1)


def handle(node: Groups, request: Request) -> Answer:
    check_heartbeat(request.body, node.groups.world, node.authorizer_of(request))
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=code, error_message=message)
