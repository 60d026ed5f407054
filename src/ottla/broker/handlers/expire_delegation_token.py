"""ExpireDelegationToken (40): there is no token to end; see `delegation_tokens`. Versions 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.delegation_tokens import NO_TIME, token_refusal
from ottla.broker.network.request import Request
from ottla.wire.types.expire_delegation_token import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 40
VERSIONS: Final = (1, 2)


def handle(node: Access, request: Request) -> ExpireDelegationTokenResponse:
    return refuse(request, token_refusal(request), None)


def refuse(request: Request, code: int, message: str | None) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(code, NO_TIME)
