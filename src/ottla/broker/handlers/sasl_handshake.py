"""SaslHandshake (17): a client chooses the mechanism of its login.

Versions 0 and 1. After version 1 come SaslAuthenticate requests, after version 0 bare tokens. On a listener without
SASL the response is ILLEGAL_SASL_STATE and an empty list of mechanisms, and the connection stays open, as on Apache
Kafka. `ottla.broker.network.sasl` tells the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode
from ottla.wire.types.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.network.authorization import Access

API_KEY: Final = 17
VERSIONS: Final = (0, 1)


def handle(node: Access, request: Request) -> SaslHandshakeResponse:
    sasl = request.connection.sasl
    if sasl is None:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
    return sasl.handshake(request.body.mechanism, request.version)


def refuse(request: Request, code: int, message: str | None) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(code)
