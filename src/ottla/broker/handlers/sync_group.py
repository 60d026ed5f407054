"""SyncGroup (14): the leader of a classic group sends the assignments, and each member gets its own.

Versions 0 to 5: from 3 on with the instance id of a static member, from 5 on with the protocol's type and name, which
are checked first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_group
from ottla.broker.network.request import Answer, Request
from ottla.core.groups.classic.sync_group import check_request
from ottla.wire.access import Operation
from ottla.wire.types.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 14
VERSIONS: Final = (0, 5)


def handle(node: Groups, request: Request) -> Answer:
    check_request(request.body, request.version)
    check_group(node, request, Operation.READ, request.body.group_id)
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
