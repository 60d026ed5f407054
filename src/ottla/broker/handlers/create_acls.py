"""CreateAcls (30): without an authorizer no ACL would have an effect, so none is taken.

Versions 1 to 3, which differ in form only. Each entry is answered with SECURITY_DISABLED and Apache Kafka's own text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.acls import check_known
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_acls import CreateAclsResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 30
VERSIONS: Final = (1, 3)

_MESSAGE: Final = "No Authorizer is configured."


def handle(node: Access, request: Request) -> CreateAclsResponse:
    for acl in request.body.creations:
        check_known(acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)
    check_cluster(node, request, Operation.ALTER)
    return refuse(request, ErrorCode.SECURITY_DISABLED, _MESSAGE)


def refuse(request: Request, code: int, message: str | None) -> CreateAclsResponse:
    kind = CreateAclsResponse
    return kind(results=tuple(kind.AclCreationResult(code, message) for _ in request.body.creations))
