"""SaslAuthenticate (36): refused, since no listener has SASL.

Versions 0 to 2: from 1 on the response has the lifetime of the session, which is 0 here. On a listener without SASL the
error is ILLEGAL_SASL_STATE with Apache Kafka's own text, and the connection stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode
from ottla.wire.types.sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 36
VERSIONS: Final = (0, 2)

_MESSAGE: Final = "SaslAuthenticate request received after successful authentication"


def handle(node: Access, request: Request) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _MESSAGE)


def refuse(request: Request, code: int, message: str | None) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(code, message)
