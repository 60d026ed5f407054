"""CreateDelegationToken (38), Renew- (39), Expire- (40) and DescribeDelegationToken (41).

A client that is not authenticated is refused, and so is one that has itself logged in with a token. The controller
answers the first three. Create and Describe have versions 1 to 3, of which 3 names owner and requester; the others have
1 and 2. Like Apache Kafka, a controller's listener advertises Describe and fails with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.metadata.delegation_tokens import described_tokens
from ottla.wire.access import ANONYMOUS
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.types.describe_delegation_token import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import DelegationTokens

__all__ = ["handle", "refuse"]

_CREATE: Final = 38
_DESCRIBE: Final = 41
_OWNERS_FROM: Final = 3
_NO_TIME: Final = -1
"""The times of a token that does not exist."""


def handle(node: DelegationTokens, request: Request) -> Answer:
    if request.api_key == _DESCRIBE and request.connection.peer.listener in node.controller_listeners:
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if request.principal == ANONYMOUS or request.connection.is_token_login:
        return refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, None)
    return _describe(node, request) if request.api_key == _DESCRIBE else node.submit(request)


def _describe(node: DelegationTokens, request: Request) -> DescribeDelegationTokenResponse:
    if not node.token_secrets.is_enabled:
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    asked: DescribeDelegationTokenRequest = request.body
    owners = None if asked.owners is None else {f"{each.principal_type}:{each.principal_name}" for each in asked.owners}
    authorize = node.authorizer_of(request)
    found = described_tokens(node.image.tokens, node.token_secrets, owners, request.principal, authorize)
    return DescribeDelegationTokenResponse(tokens=tuple(found))


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
