"""LeaveGroup (13): members leave a classic group, or are removed by their instance ids.

Versions 0 to 5. Up to 2 one member leaves, and its error is the error of the response; from 3 on many may, each with an
error of its own; from 5 on they may give a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation
from ottla.wire.types.leave_group import LeaveGroupResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 13
VERSIONS: Final = (0, 5)


def handle(node: Groups, request: Request) -> Answer:
    check_group(node, request, Operation.READ, request.body.group_id)
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
