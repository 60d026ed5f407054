"""SaslAuthenticate (36): what the client says in its login, and what the broker answers.

Versions 0 to 2: from 1 on the response has the lifetime of the session, 0 if it has no end. On a listener without SASL,
and after the login, the error is ILLEGAL_SASL_STATE with Apache Kafka's own text, and the connection stays open.
`ottla.broker.network.sasl` tells the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.wire.errors import ErrorCode
from ottla.wire.types.sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 36
VERSIONS: Final = (0, 2)

_MESSAGE: Final = "SaslAuthenticate request received after successful authentication"


def handle(node: Access, request: Request) -> Answer:
    sasl = request.connection.sasl
    if sasl is None:
        return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _MESSAGE)
    return sasl.authenticate(request.body.auth_bytes)


def refuse(request: Request, code: int, message: str | None) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(code, message)
