"""JoinGroup (11): a member joins a classic group, or takes part in its next rebalance.

Versions 0 to 9. In 0 the session timeout is also the rebalance timeout. From 4 on a dynamic member must join again with
the member id of the first response; from 5 on there are static members; from 7 on a response may have no protocol; from
8 on a member may give a reason; from 9 on the leader may be told to skip the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation
from ottla.wire.types.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 11
VERSIONS: Final = (0, 9)

_NULL_PROTOCOL_FROM: Final = 7


def handle(node: Groups, request: Request) -> Answer:
    check_group(node, request, Operation.READ, request.body.group_id)
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, protocol_name=None if request.version >= _NULL_PROTOCOL_FROM else "", generation_id=-1
    )
