"""Heartbeat (12): a member of a classic group keeps its session alive.

Versions 0 to 4: from 3 on with the instance id of a static member. While the coordinator loads its groups it does not
know the member, and responds without an error, as Apache Kafka does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 12
VERSIONS: Final = (0, 4)


def handle(node: Groups, request: Request) -> Answer:
    check_group(node, request, Operation.READ, request.body.group_id)
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=0 if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
