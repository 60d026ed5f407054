"""CreateDelegationToken (38), Renew- (39), Expire- (40) and DescribeDelegationToken (41): there are no tokens.

A client that is not authenticated gets that error first; for others, tokens are disabled. Create and Describe have
versions 1 to 3, of which 3 names owner and requester; the others have 1 and 2. Like Apache Kafka, a controller's
listener advertises Describe and fails with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.types.describe_delegation_token import DescribeDelegationTokenResponse
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

__all__ = ["handle", "refuse"]

_CREATE: Final = 38
_DESCRIBE: Final = 41
_OWNERS_FROM: Final = 3
_NO_TIME: Final = -1
"""The times of a token that does not exist."""
_ANONYMOUS: Final = "User:ANONYMOUS"


def handle(node: Cluster, request: Request) -> Any:  # noqa: ANN401 - the answer of one of four APIs
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if request.principal == _ANONYMOUS:
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if request.api_key == _DESCRIBE and request.connection.peer.listener in node.config["controller.listener.names"]:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return refuse(request, code, None)


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    if request.api_key == _CREATE:
        return _create(request, code)
    if request.api_key == _DESCRIBE:
        return DescribeDelegationTokenResponse(code)
    kinds = {39: RenewDelegationTokenResponse, 40: ExpireDelegationTokenResponse}
    return kinds[request.api_key](code, _NO_TIME)


def _create(request: Request, code: int) -> CreateDelegationTokenResponse:
    kind, _, name = request.principal.partition(":")
    owner = (kind, name)
    if request.body.owner_principal_name:
        owner = (request.body.owner_principal_type or "", request.body.owner_principal_name)
    requester = (kind, name) if request.version >= _OWNERS_FROM else ("", "")
    return CreateDelegationTokenResponse(code, *owner, *requester, _NO_TIME, _NO_TIME, _NO_TIME)
