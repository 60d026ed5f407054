"""Writes requests and reads responses as bytes, for asyncio and blocking connections."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from ottla.client.address import Peer
from ottla.client.errors import ProtocolError, UnsupportedVersionError
from ottla.client.versions import api_of
from ottla.wire import WireError, frames
from ottla.wire.errors import ErrorCode
from ottla.wire.index import MESSAGES

__all__ = ["SIZE", "Requests", "SentRequest", "bad_size", "loss", "patience_ms", "read_answer"]

SIZE: Final = Struct(">i")
"""What goes before every frame."""
TLS_ALERT_SIZE: Final = 0x15030000
"""How the answer of a TLS listener begins, to somebody who does not speak TLS."""
_CORRELATION_AND_ERROR: Final = Struct(">ih")
_CORRELATION_ID_MAX: Final = (1 << 31) - 1


class SentRequest(NamedTuple):
    """What is remembered of a request until its response comes."""

    correlation_id: int
    api: str
    api_key: int
    version: int


class Requests:
    """Numbers the requests of one connection and writes their frames."""

    def __init__(self, peer: Peer, client_id: str) -> None:
        self._peer = peer
        self._client_id = client_id
        self._next_correlation_id = 0

    def write(self, message: object, version: int) -> tuple[SentRequest, bytes]:
        """What to remember of the request, and its frame."""
        api = api_of(type(message))
        key = MESSAGES[f"{api}Request"].key
        assert key is not None, f"{api} has no API key"
        number = self._next_correlation_id
        try:
            frame = frames.write_request(message, version, correlation_id=number, client_id=self._client_id)
        except WireError as error:
            raise UnsupportedVersionError(
                self._peer, f"{api} v{version}", f"the request cannot be encoded: {error}"
            ) from None
        self._next_correlation_id = 0 if number == _CORRELATION_ID_MAX else number + 1
        return SentRequest(number, api, key, version), frame


def read_answer(peer: Peer, request: SentRequest, frame: bytes | bytearray) -> object:
    """The message in a frame, or ProtocolError; after one that `is_out_of_step` nothing that follows makes sense."""
    (correlation_id,) = SIZE.unpack_from(frame)
    if correlation_id != request.correlation_id:
        reason = f"correlation id {correlation_id} instead of {request.correlation_id} for {request.api}"
        raise ProtocolError(peer, reason, is_out_of_step=True)
    version = request.version
    if request.api_key == frames.API_VERSIONS_KEY and _is_stepping_down(frame):
        version = 0  # the broker does not have this version, and says so in a form that everyone can read
    try:
        return frames.read_response(frame, request.api_key, version).body  # type: ignore[arg-type]  # any buffer will do
    except WireError as error:
        raise ProtocolError(peer, f"{request.api}Response v{version}: {error}") from None


def patience_ms(message: object) -> int:
    """How long the request itself lets the broker wait before it answers."""
    for field in ("max_wait_ms", "rebalance_timeout_ms"):
        value = getattr(message, field, None)
        if isinstance(value, int):
            return max(0, value)
    return 0


def loss(error: Exception | None, waiting: Sequence[SentRequest], answered: int) -> str:
    """Why a connection ended, and what that may mean: brokers close without a word what they do not understand."""
    reason = "the broker closed it" if error is None else str(error) or type(error).__name__
    if not waiting:
        return reason
    reason += f" before it responded to {waiting[0].api} v{waiting[0].version}"
    if answered == 0:
        return f"{reason}; does it use TLS?"
    if all(answered <= 1 and each.api != "SaslAuthenticate" for each in waiting):
        return f"{reason}; a SASL listener does that to clients without SASL"
    return reason


def bad_size(peer: Peer, size: int, size_max: int) -> ProtocolError:
    if size & 0xFFFF0000 == TLS_ALERT_SIZE:
        reason = "it uses TLS, but this client is configured without TLS"
    else:
        reason = f"a response of {size} bytes; the maximum is {size_max}"
    return ProtocolError(peer, reason, is_out_of_step=True)


def _is_stepping_down(frame: bytes | bytearray) -> bool:
    if len(frame) < _CORRELATION_AND_ERROR.size:
        return False
    (_, error_code) = _CORRELATION_AND_ERROR.unpack_from(frame)
    return bool(error_code == ErrorCode.UNSUPPORTED_VERSION)
