"""DeleteGroups (42): delete groups of any type, with their offsets. They must not have members.

Versions 0 to 3. From 3 on a group may fail with GROUP_DELETION_FAILED and a message, if its topology description could
not be deleted (KIP-1331). Older clients do not know this code, and get UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.network.scatter_gather import scatter_gather
from ottla.core.groups.admin import DeleteGroup
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_groups import DeleteGroupsResponse, DeleteGroupsResponseDeletableGroupResult

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 42
VERSIONS: Final = (0, 3)
_MESSAGES_FROM: Final = 3

_Result = DeleteGroupsResponseDeletableGroupResult


def handle(node: Groups, request: Request) -> DelayedResponse:
    def ask(group_id: str, done: Callable[[_Result], None]) -> None:
        if not node.authorize(request, Operation.DELETE, ResourceType.GROUP, group_id):
            done(_Result(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return

        def answer(result: _Result) -> None:
            done(_as_known_to(request.version, result))

        node.groups.ask(
            request, group_id, DeleteGroup(group_id), answer, refuse=lambda code, _: _Result(group_id, code)
        )

    group_ids = tuple(dict.fromkeys(request.body.groups_names))
    return scatter_gather(group_ids, ask, lambda results: DeleteGroupsResponse(results=tuple(results)))


def _as_known_to(version: int, result: _Result) -> _Result:
    if version >= _MESSAGES_FROM:
        return result
    is_new = result.error_code == ErrorCode.GROUP_DELETION_FAILED
    return _Result(result.group_id, ErrorCode.UNKNOWN_SERVER_ERROR if is_new else result.error_code)


def refuse(request: Request, code: int, message: str | None) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(_Result(each, code) for each in request.body.groups_names))
