"""OffsetDelete (47): delete committed offsets of a group.

Version 0. Offsets of topics to which a member subscribes are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 47
VERSIONS: Final = (0, 0)


def handle(node: Groups, request: Request) -> Answer:
    body: OffsetDeleteRequest = request.body
    if not node.authorize(request, Operation.DELETE, ResourceType.GROUP, body.group_id):
        return refuse(request, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    return node.groups.answer(request, body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)
