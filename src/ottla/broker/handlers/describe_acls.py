"""DescribeAcls (29): without an authorizer there are no ACLs to show.

Versions 1 to 3, which differ in form only. The answer is SECURITY_DISABLED with Apache Kafka's own text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.acls import check_known
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_acls import DescribeAclsResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 29
VERSIONS: Final = (1, 3)

_MESSAGE: Final = "No Authorizer is configured on the broker"


def handle(node: Access, request: Request) -> DescribeAclsResponse:
    body = request.body
    check_known(body.resource_type_filter, body.pattern_type_filter, body.operation, body.permission_type)
    check_cluster(node, request, Operation.DESCRIBE)
    return refuse(request, ErrorCode.SECURITY_DISABLED, _MESSAGE)


def refuse(request: Request, code: int, message: str | None) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message)
