"""DescribeAcls (29), CreateAcls (30) and DeleteAcls (31).

Versions 1 to 3, which differ in form only. Without an authorizer there are no ACLs: the response, for each entry or
filter, is SECURITY_DISABLED with Apache Kafka's own text. Like Apache Kafka, the broker closes the connection if a
resource type, pattern type, operation or permission is 0; other invalid numbers get a response. The controller changes
ACLs; each broker describes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Close, CloseCause, Request
from ottla.core.metadata.acls import described_acls
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_acls import CreateAclsResponse
from ottla.wire.types.delete_acls import DeleteAclsResponse
from ottla.wire.types.describe_acls import DescribeAclsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import AccessControl

__all__ = ["handle", "refuse"]

_DESCRIBE: Final = 29
_CREATE: Final = 30
_UNKNOWN: Final = 0


def handle(node: AccessControl, request: Request) -> Any:  # noqa: ANN401 - the answer of one of three APIs
    for codes in _codes(request):
        if _UNKNOWN in codes:
            reason = "the request has UNKNOWN where a resource, a pattern, an operation or a permission must be"
            raise Close(reason, CloseCause.MALFORMED_REQUEST)
    is_description = request.api_key == _DESCRIBE
    check_cluster(node, request, Operation.DESCRIBE if is_description else Operation.ALTER)
    if node.has_acls:
        return described_acls(node.image.acls.values(), request.body) if is_description else node.submit(request)
    message = "No Authorizer is configured on the broker" if is_description else "No Authorizer is configured."
    return refuse(request, ErrorCode.SECURITY_DISABLED, message)


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    if request.api_key == _DESCRIBE:
        return DescribeAclsResponse(error_code=code, error_message=message)
    if request.api_key == _CREATE:
        created = tuple(CreateAclsResponse.AclCreationResult(code, message) for _ in request.body.creations)
        return CreateAclsResponse(results=created)
    deleted = tuple(DeleteAclsResponse.DeleteAclsFilterResult(code, message) for _ in request.body.filters)
    return DeleteAclsResponse(filter_results=deleted)


def _codes(request: Request) -> list[tuple[int, int, int, int]]:
    """Resource type, pattern type, operation and permission of each entry or filter."""
    body = request.body
    if request.api_key == _CREATE:
        return [
            (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
            for each in body.creations
        ]
    filters = (body,) if request.api_key == _DESCRIBE else body.filters
    return [
        (each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type) for each in filters
    ]
