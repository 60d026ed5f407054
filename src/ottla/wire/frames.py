"""Frames: the size and header before a message on a connection.

A frame is an int32 size and so many bytes: a header, then a body. The API and its version determine the header version,
with two exceptions: the response to ApiVersions always has header v0 (a client that does not yet know the broker must
be able to read it), and the client id in the request header is never compact.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla import wire
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.support import Refused, read_unknown_tags, read_varint

if TYPE_CHECKING:
    from ottla.wire.types.headers import RequestHeader, ResponseHeader

API_VERSIONS_KEY = 18
FRAME_MAX_BYTES = 100 * 1024 * 1024
"""Kafka's default bound on one frame (socket.request.max.bytes)."""

SIZE_BYTES = 4
"""The size before a frame."""

_SIZE = Struct(">i")
_REQUEST_HEADER = Struct(">hhih")
_CORRELATION = Struct(">i")
_CLIENT_ID_NULL = -1


class Request(NamedTuple):
    name: str
    version: int
    header: RequestHeader
    body: Any


class Response(NamedTuple):
    name: str
    version: int
    header: ResponseHeader
    body: Any


@cache
def api_names() -> dict[int, str]:
    """API key -> name without Request or Response: 78 -> "ShareFetch"."""
    return {
        entry.key: name.removesuffix("Request")
        for name, entry in MESSAGES.items()
        if entry.kind == "request" and entry.key is not None
    }


@cache
def request_header_version(api_key: int, version: int) -> int:
    """2 where the request is flexible, else 1."""
    return 2 if version >= MESSAGES[f"{_api_name(api_key)}Request"].flexible_low else 1


@cache
def response_header_version(api_key: int, version: int) -> int:
    """1 where the response is flexible, else 0; ApiVersions always 0."""
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if version >= MESSAGES[f"{_api_name(api_key)}Response"].flexible_low else 0


def _api_name(api_key: int) -> str:
    name = api_names().get(api_key)
    if name is None:
        raise WireError("RequestHeader.RequestApiKey", 0, f"there is no API with key {api_key}")
    return name


def split(buffer: bytes | memoryview, *, max_bytes: int = FRAME_MAX_BYTES) -> tuple[list[bytes], int]:
    """The whole frames at the start of `buffer`, without their sizes, and how many bytes they took."""
    frames = []
    at = 0
    while at + _SIZE.size <= len(buffer):
        (size,) = _SIZE.unpack_from(buffer, at)
        if not 0 <= size <= max_bytes:
            raise WireError("Size", at, f"a frame of {size} bytes; at most {max_bytes} are taken")
        end = at + _SIZE.size + size
        if end > len(buffer):
            break
        frames.append(bytes(buffer[at + _SIZE.size : end]))
        at = end
    return frames, at


def frame(*parts: bytes) -> bytes:
    """The parts with their common size before them."""
    return b"".join((_SIZE.pack(sum(map(len, parts))), *parts))


def read_request_header(data: bytes) -> tuple[RequestHeader, int]:
    """The header at the start of a frame, and where the body begins.

    The version in the header may be unknown (an ApiVersions request from a newer client): the caller decides.
    """
    from ottla.wire.types.headers import RequestHeader

    try:
        key, version, correlation_id, length = _REQUEST_HEADER.unpack_from(data)
        at = _REQUEST_HEADER.size
        client_id = None
        if length >= 0:
            client_id = data[at : at + length].decode()
            at += length
        count, tags = 0, None
        if request_header_version(key, version) == 2:
            count, at = read_varint(data, at)
        if count:
            tags, at = read_unknown_tags(data, at, count)
    except (error, Refused, IndexError, UnicodeDecodeError):
        raise _explain_header(data) from None
    if length < _CLIENT_ID_NULL or at > len(data):
        raise _explain_header(data)
    return RequestHeader(key, version, correlation_id, client_id, tags), at


def _explain_header(data: bytes) -> WireError:
    """The interpreter's error for a header that read_request_header rejected."""
    from ottla.wire.compile import classes_of, message_shape
    from ottla.wire.trace import trace

    version = 1
    if len(data) >= _SIZE.size:
        key, api_version = Struct(">hh").unpack_from(data)
        version = request_header_version(key, api_version)
    traced = trace(message_shape("RequestHeader", version), classes_of("RequestHeader"), data, allow_rest=True)
    return traced.error or WireError("RequestHeader", None, "cannot be read")


def read_request(data: bytes, *, whole: bool = True) -> Request:
    """A request from a frame's content. Raises WireError. Without `whole`, bytes after the body are ignored."""
    header, at = read_request_header(data)
    name = f"{_api_name(header.request_api_key)}Request"
    body = wire.decoder(name, header.request_api_version)(data, at, whole)
    return Request(name, header.request_api_version, header, body)


def read_response(data: bytes, api_key: int, version: int) -> Response:
    """A whole response from a frame's content; the caller knows the API and version. Raises WireError."""
    from ottla.wire.types.headers import ResponseHeader

    name = f"{_api_name(api_key)}Response"
    try:
        (correlation_id,) = _CORRELATION.unpack_from(data)
        at = _CORRELATION.size
        tags = None
        if response_header_version(api_key, version):
            count, at = read_varint(data, at)
            if count:
                tags, at = read_unknown_tags(data, at, count)
    except (error, Refused, IndexError):
        raise WireError("ResponseHeader", min(len(data), _CORRELATION.size), "the header is cut off") from None
    body = wire.decoder(name, version)(data, at)
    return Response(name, version, ResponseHeader(correlation_id, tags), body)


def write_request(message: object, version: int, *, correlation_id: int, client_id: str | None = None) -> bytes:
    """A whole frame: size, header and the request."""
    name = type(message).__name__
    key = _key_of(name, "request")
    raw_id = b"\xff\xff" if client_id is None else _client_id(client_id)
    head = _REQUEST_HEADER.pack(key, version, correlation_id, 0)[:-2] + raw_id
    if request_header_version(key, version) == 2:
        head += b"\x00"
    return frame(head, wire.encode(message, version))


def write_response(
    message: object, version: int, *, correlation_id: int, unknown_tags: dict[int, bytes] | None = None
) -> bytes:
    """A whole frame: size, header and the response."""
    from ottla.wire.support import tagged_section

    key = _key_of(type(message).__name__, "response")
    head = _CORRELATION.pack(correlation_id)
    if response_header_version(key, version):
        head += tagged_section([], unknown_tags) if unknown_tags else b"\x00"
    return frame(head, wire.encode(message, version))


def _client_id(text: str) -> bytes:
    raw = text.encode()
    if len(raw) > (1 << 15) - 1:
        raise WireError("RequestHeader.ClientId", None, f"{len(raw)} bytes are too long")
    return Struct(">h").pack(len(raw)) + raw


def _key_of(name: str, kind: str) -> int:
    entry = MESSAGES.get(name)
    if entry is None or entry.kind != kind or entry.key is None:
        raise WireError(name, None, f"is not a {kind}")
    return entry.key
