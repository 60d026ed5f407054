"""RenewDelegationToken (39): there is no token to renew; see `delegation_tokens`. Versions 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.delegation_tokens import NO_TIME, token_refusal
from ottla.broker.network.request import Request
from ottla.wire.types.renew_delegation_token import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 39
VERSIONS: Final = (1, 2)


def handle(node: Access, request: Request) -> RenewDelegationTokenResponse:
    return refuse(request, token_refusal(request), None)


def refuse(request: Request, code: int, message: str | None) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(code, NO_TIME)
