"""CreateDelegationToken (38): no token is given; see `delegation_tokens`.

Versions 1 to 3: from 3 on a token can be asked for somebody else, and the answer names owner and requester.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.delegation_tokens import NO_TIME, token_refusal
from ottla.broker.network.request import Request
from ottla.wire.types.create_delegation_token import CreateDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 38
VERSIONS: Final = (1, 3)

_OWNERS_FROM: Final = 3


def handle(node: Access, request: Request) -> CreateDelegationTokenResponse:
    return refuse(request, token_refusal(request), None)


def refuse(request: Request, code: int, message: str | None) -> CreateDelegationTokenResponse:
    kind, _, name = request.principal.partition(":")
    owner = (kind, name)
    if request.body.owner_principal_name:
        owner = (request.body.owner_principal_type or "", request.body.owner_principal_name)
    requester = (kind, name) if request.version >= _OWNERS_FROM else ("", "")
    return CreateDelegationTokenResponse(code, *owner, *requester, NO_TIME, NO_TIME, NO_TIME)
