"""StreamsGroupDescribe (89): streams groups with their topology, members and tasks (KIP-1071).

Versions 0 and 1: from 1 on with the assignor's name and, on request, the topology's description (KIP-1331). Groups that
the client may not describe come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.network.authorization import group_operations
from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.network.scatter_gather import scatter_gather
from ottla.core.groups.streams.group_description import DescribeStreamsGroup
from ottla.core.groups.streams.settings import check_served
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 89
VERSIONS: Final = (0, 1)

_Group = StreamsGroupDescribeResponseDescribedGroup


def handle(node: Groups, request: Request) -> DelayedResponse:
    check_served(node.groups.world)
    may = {
        group_id: node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        for group_id in request.body.group_ids
    }

    def finish(groups: list[_Group]) -> StreamsGroupDescribeResponse:
        return StreamsGroupDescribeResponse(groups=tuple(_with_operations(node, request, each) for each in groups))

    def ask(group_id: str, done: Callable[[_Group], None]) -> None:
        if not may[group_id]:
            done(_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif not group_id.strip():
            done(_error(group_id, ErrorCode.INVALID_GROUP_ID))
        else:
            body = DescribeStreamsGroup(group_id, request.body.include_topology_description)
            node.groups.ask(request, group_id, body, done, refuse=lambda code, message: _error(group_id, code, message))

    return scatter_gather(sorted(request.body.group_ids, key=lambda group_id: may[group_id]), ask, finish)


def refuse(request: Request, code: int, message: str | None) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=tuple(_error(group_id, code, message) for group_id in request.body.group_ids)
    )


def _error(group_id: str, code: int, message: str | None = None) -> _Group:
    return _Group(error_code=code, error_message=message, group_id=group_id)


def _with_operations(node: Groups, request: Request, group: _Group) -> _Group:
    if group.error_code or not request.body.include_authorized_operations:
        return group
    return replace(group, authorized_operations=group_operations(node, request, group.group_id))
