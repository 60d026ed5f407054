"""DeleteAcls (31): without an authorizer there are no ACLs to remove.

Versions 1 to 3, which differ in form only. Each filter is answered with SECURITY_DISABLED and Apache Kafka's own text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.acls import check_known
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_acls import DeleteAclsResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 31
VERSIONS: Final = (1, 3)

_MESSAGE: Final = "No Authorizer is configured."


def handle(node: Access, request: Request) -> DeleteAclsResponse:
    for each in request.body.filters:
        check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
    check_cluster(node, request, Operation.ALTER)
    return refuse(request, ErrorCode.SECURITY_DISABLED, _MESSAGE)


def refuse(request: Request, code: int, message: str | None) -> DeleteAclsResponse:
    kind = DeleteAclsResponse
    return kind(filter_results=tuple(kind.DeleteAclsFilterResult(code, message) for _ in request.body.filters))
