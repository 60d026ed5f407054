"""ListGroups (16): the groups of all types that this node coordinates.

Versions 0 to 5: from 4 on with states and a filter of states, from 5 on with types and a filter of types. A client that
may not describe the cluster sees only the groups that it may describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_groups import ListGroupsResponse, ListGroupsResponseListedGroup

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 16
VERSIONS: Final = (0, 5)


def handle(node: Groups, request: Request) -> DelayedResponse:
    later = DelayedResponse()

    def done(answers: list[Any]) -> None:
        later.complete(_response(node, request, answers))

    node.groups.ask_all(request, request.body, done, refuse=lambda code, _: code)
    return later


def refuse(request: Request, code: int, message: str | None) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code)


def _response(node: Groups, request: Request, answers: list[Any]) -> ListGroupsResponse:
    """Each coordinator answers with its groups or with an error. One that has just moved away is left out."""
    groups: list[ListGroupsResponseListedGroup] = []
    for answer in answers:
        if not isinstance(answer, ErrorCode):
            groups.extend(answer)
        elif answer is not ErrorCode.NOT_COORDINATOR:
            return ListGroupsResponse(error_code=answer)
    sees_all = node.authorize(request, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    return ListGroupsResponse(groups=tuple(each for each in groups if sees_all or _sees(node, request, each.group_id)))


def _sees(node: Groups, request: Request, group_id: str) -> bool:
    return node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group_id)
