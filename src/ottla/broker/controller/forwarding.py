"""Envelope: a client's request on its way from the broker that got it to the active controller.

The broker packs the request with the principal that it has authenticated and the client's address. The controller
answers as if the client had asked it: with that principal's rights and quotas.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ottla.broker.network.addresses import address_text
from ottla.wire import WireError, frames
from ottla.wire.errors import ErrorCode
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import decode_versioned, encode_framed
from ottla.wire.reject import Reject
from ottla.wire.types.envelope import EnvelopeRequest
from ottla.wire.types.principal import DefaultPrincipalData

if TYPE_CHECKING:
    from ottla.broker.network.request import Request

__all__ = ["FORWARDABLE", "Sender", "error_codes", "pack", "read_answer", "read_sender"]

FORWARDABLE: Final = frozenset(
    {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81, 94},
)
"""The APIs that a broker passes on."""

_PRINCIPAL_VERSION: Final = 0


class Sender(NamedTuple):
    """Who sent a forwarded request."""

    principal: str
    host: str
    is_token_login: bool = False


def pack(body: object, version: int, client: Request) -> EnvelopeRequest:
    """A request of a client, or one that the broker makes in its name."""
    frame = frames.write_request(
        body, version, correlation_id=client.correlation_id, client_id=client.client_id or None
    )
    kind, _, name = client.principal.partition(":")
    return EnvelopeRequest(
        request_data=frame[frames.SIZE_BYTES :],
        request_principal=encode_framed(
            DefaultPrincipalData(kind, name, client.connection.is_token_login), _PRINCIPAL_VERSION
        ),
        client_host_address=ip_address(client.connection.peer.host).packed,
    )


def read_sender(envelope: EnvelopeRequest) -> Sender:
    """Who sent what is in an envelope. Reject if it does not say so."""
    try:
        principal: DefaultPrincipalData = decode_versioned(
            "DefaultPrincipalData", bytes(envelope.request_principal or b"")
        ).message
    except WireError as error:
        raise Reject(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    try:
        host = address_text(str(ip_address(bytes(envelope.client_host_address))))
    except ValueError:
        size = len(envelope.client_host_address)
        raise Reject(ErrorCode.INVALID_REQUEST, f"an address of {size} bytes; it has 4 or 16") from None
    return Sender(f"{principal.type}:{principal.name}", host, principal.token_authenticated)


def read_answer(data: bytes, body: object, version: int) -> Any:  # noqa: ANN401 - the response to any request
    """The answer in an envelope to a request. WireError if it is none."""
    key = MESSAGES[type(body).__name__].key
    assert key is not None
    return frames.read_response(bytes(data), key, version).body


def error_codes(message: Any) -> Iterator[int]:  # noqa: ANN401
    """Every error code in a message."""
    if isinstance(message, tuple):
        for each in message:
            yield from error_codes(each)
    elif isinstance(message, msgspec.Struct):
        yield getattr(message, "error_code", ErrorCode.NONE)
        for name in message.__struct_fields__:
            yield from error_codes(getattr(message, name))
