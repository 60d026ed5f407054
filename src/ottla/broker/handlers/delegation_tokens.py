"""Why no delegation token is given, changed or shown. No handler."""

from __future__ import annotations

from typing import Final

from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode

__all__ = ["NO_TIME", "token_refusal"]

NO_TIME: Final = -1
"""Stands for the times of a token that there is not."""
_ANONYMOUS: Final = "User:ANONYMOUS"


def token_refusal(request: Request) -> ErrorCode:
    """Tokens stand for a login; who has none is told so first. For others they are switched off."""
    if request.principal == _ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
