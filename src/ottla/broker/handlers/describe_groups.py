"""DescribeGroups (15): classic groups with their members and assignments.

Versions 0 to 6: from 3 on with authorized operations, from 4 on with instance ids. A group that does not exist, or has
another type, is Dead without an error up to 5, and GROUP_ID_NOT_FOUND from 6 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.network.authorization import group_operations
from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.network.scatter_gather import scatter_gather
from ottla.core.groups.admin import DescribeGroup
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_groups import DescribeGroupsResponse, DescribeGroupsResponseDescribedGroup

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 15
VERSIONS: Final = (0, 6)

_OPERATIONS_FROM: Final = 3

_Group = DescribeGroupsResponseDescribedGroup


def handle(node: Groups, request: Request) -> DelayedResponse:
    def finish(groups: list[_Group]) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(groups=tuple(_with_operations(node, request, each) for each in groups))

    def ask(group_id: str, done: Callable[[_Group], None]) -> None:
        if not node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            done(_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return
        node.groups.ask(request, group_id, DescribeGroup(group_id), done, refuse=lambda code, _: _error(group_id, code))

    return scatter_gather(request.body.groups, ask, finish)


def refuse(request: Request, code: int, message: str | None) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=tuple(_error(group_id, code) for group_id in request.body.groups))


def _error(group_id: str, code: int) -> _Group:
    return _Group(error_code=code, group_id=group_id)


def _with_operations(node: Groups, request: Request, group: _Group) -> _Group:
    is_requested = request.version >= _OPERATIONS_FROM and request.body.include_authorized_operations
    if not is_requested or group.error_code:
        return group
    return replace(group, authorized_operations=group_operations(node, request, group.group_id))
