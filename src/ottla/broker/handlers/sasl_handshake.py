"""SaslHandshake (17): refused, since no listener has SASL.

Versions 0 and 1, which do not differ. On a listener without SASL the response is ILLEGAL_SASL_STATE and an empty list
of mechanisms, and the connection stays open, as on Apache Kafka.
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
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def refuse(request: Request, code: int, message: str | None) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(code)
