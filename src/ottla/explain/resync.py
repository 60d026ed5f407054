"""Finds the next frame after a loss, or in the middle of a stream.

A request can be recognised: it has a size, an existing API key and version, and a client id that is text. A response
has only a size and the correlation id of a request, so the search looks for the ids of waiting requests or, at the
start of a segment, for a whole frame that reads as some response.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from struct import Struct

from ottla.wire import frames
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.support import Refused, read_unknown_tags, read_varint

__all__ = [
    "REQUEST_BYTES_MIN",
    "api_keys",
    "first_fields",
    "has_known_version",
    "is_foreign_request",
    "is_request_start",
    "is_some_response",
    "is_whole_request",
    "next_request",
    "next_response",
    "skip_tags",
]

REQUEST_BYTES_MIN = 10
"""API key, version, correlation id and the client id's length."""
UNSEEN_BYTES_MAX = 4 * 1024 * 1024
"""The largest frame that is accepted in the middle of a segment: a wrong size would make us wait for its end."""
CLIENT_ID_BYTES_MAX = 1024

_SIZE = Struct(">i")
_START = Struct(">hhih")
_FRAME_START = Struct(">ihhih")
_RESPONSE_START = Struct(">ii")
# A possible size (at least ten, so that zeros do not match), a key and a version that are not far too high; a first
# filter.
_CANDIDATE = re.compile(rb"(?=(?!\x00\x00\x00[\x00-\x09])[\x00-\x06].{3}\x00[\x00-\x7f]\x00[\x00-\x20])", re.DOTALL)


@cache
def api_keys() -> dict[str, int]:
    """API name -> key."""
    return {name: key for key, name in frames.api_names().items()}


def first_fields(data: bytes) -> tuple[int, int, int]:
    """API key, version and correlation id of a request whose header cannot be read; -1 for missing ones."""
    if len(data) < _START.size - 2:
        return -1, -1, -1
    key, version, correlation_id = Struct(">hhi").unpack_from(data)
    return key, version, correlation_id


def skip_tags(data: bytes, at: int, path: str) -> int:
    """The position after a section of tagged fields."""
    try:
        count, at = read_varint(data, at)
        return read_unknown_tags(data, at, count)[1] if count else at
    except (IndexError, Refused):
        raise WireError(path, min(len(data), at), "the header is cut off") from None


# --- requests ---------------------------------------------------------------------------------------------------------


def next_request(buffer: bytes, starts: Sequence[int]) -> int | None:
    """The start of the first frame that looks like a request."""
    for match in _CANDIDATE.finditer(buffer):
        at = match.start()
        if len(buffer) - at < _FRAME_START.size:
            return None
        if _is_request_at(buffer, at, is_segment_start=at in starts):
            return at
    return None


def _is_request_at(buffer: bytes, at: int, *, is_segment_start: bool) -> bool:
    """A whole frame must read as a request to its end; in a truncated one, the header must not be all zeros."""
    (size,) = _SIZE.unpack_from(buffer, at)
    content = buffer[at + _SIZE.size : at + _SIZE.size + size]
    if not is_request_start(content, size) or not has_known_version(content):
        return False
    _, _, _, length = _START.unpack_from(content)
    if len(content) == size:
        return is_whole_request(content) or (length > 0 and is_foreign_request(content))
    return not is_foreign_request(content, size) and (is_segment_start or (length > 0 and size <= UNSEEN_BYTES_MAX))


def is_request_start(data: bytes, size: int) -> bool:
    """Whether a frame's content of `size` bytes, of which `data` is the beginning, may start with a request header.

    Unknown APIs and versions are allowed.
    """
    if size < REQUEST_BYTES_MIN or size > frames.FRAME_MAX_BYTES:
        return False
    if len(data) < _START.size:
        return True
    key, version, _, length = _START.unpack_from(data)
    if not 0 <= key < 1024 or not 0 <= version < 128 or not -1 <= length <= size - REQUEST_BYTES_MIN:
        return False
    return _is_text(data[_START.size : _START.size + max(length, 0)])


def is_whole_request(data: bytes) -> bool:
    """Whether a frame's content is exactly one request."""
    try:
        frames.read_request(data)
    except WireError:
        return False
    return True


def is_foreign_request(data: bytes, size: int | None = None) -> bool:
    """Whether the header is valid but the API or the version is unknown, so that the body cannot be checked."""
    if not is_request_start(data, len(data) if size is None else size) or len(data) < _START.size:
        return False
    key, version, _ = first_fields(data)
    name = frames.api_names().get(key)
    return name is None or not MESSAGES[f"{name}Request"].low <= version <= MESSAGES[f"{name}Request"].high


def has_known_version(data: bytes) -> bool:
    """Whether the header has an existing API, in a version that exists or existed."""
    key, version, _ = first_fields(data)
    name = frames.api_names().get(key)
    if name is None:
        return False
    # Clients send ApiVersions in their newest version, which may be unknown to us.
    return name == "ApiVersions" or version <= MESSAGES[f"{name}Request"].high


def _is_text(raw: bytes) -> bool:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # The end may be truncated in the middle of a character; anything else is no client id.
        return len(raw) > 3 and _is_text(raw[:-3]) if raw and raw[-1] > 0x7F else False
    return text.isprintable()


# --- responses --------------------------------------------------------------------------------------------------------


def next_response(buffer: bytes, starts: Sequence[int], waiting: Collection[int]) -> int | None:
    """The start of the first frame that answers a waiting request, or that is certainly a response."""
    found = [at for correlation_id in waiting if (at := _find_answer(buffer, correlation_id, starts)) is not None]
    for start in starts:
        if found and start >= min(found):
            break
        if len(buffer) - start >= _RESPONSE_START.size and _is_response_at(buffer, start):
            return start
    return min(found, default=None)


def _find_answer(buffer: bytes, correlation_id: int, starts: Sequence[int]) -> int | None:
    needle = _SIZE.pack(correlation_id)
    at = buffer.find(needle, _SIZE.size)
    while at >= 0:
        begin = at - _SIZE.size
        (size,) = _SIZE.unpack_from(buffer, begin)
        if _SIZE.size <= size <= (frames.FRAME_MAX_BYTES if begin in starts else UNSEEN_BYTES_MAX):
            return begin
        at = buffer.find(needle, at + 1)
    return None


def _is_response_at(buffer: bytes, start: int) -> bool:
    (size,) = _SIZE.unpack_from(buffer, start)
    end = start + _SIZE.size + size
    return _SIZE.size < size and end <= len(buffer) and is_some_response(buffer[start + _SIZE.size : end])


def is_some_response(data: bytes) -> bool:
    """Whether a frame's content is hardly anything but a response of some API in some version."""
    from ottla.explain.guess import guess_response

    return guess_response(data).is_convincing
