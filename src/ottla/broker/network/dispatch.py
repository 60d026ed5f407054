"""Dispatch: reads requests from frames, calls handlers, writes responses to frames.

Behaviour as measured on Apache Kafka 4.3.1: a frame whose header or body cannot be read, an unknown API, a version that
is not served, and an API that the listener does not offer all end the connection without an answer. Only ApiVersions is
answered in any version, in version 0 with the error. Bytes behind a well-formed body are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla import wire
from ottla.broker.network.quotas.charges import Meter
from ottla.broker.network.repeated_heartbeat import HEARTBEATS, REPEATED_MAX_BYTES, RepeatedHeartbeat
from ottla.broker.network.request import AfterWrite, Answer, Close, CloseCause, Encoded, Request
from ottla.broker.network.send_queue import Part
from ottla.wire import WireError, frames
from ottla.wire.reject import message_of
from ottla.wire.types.headers import RequestHeader

__all__ = ["Api", "Dispatch", "Observer", "Tap"]

log = logging.getLogger(__name__)

_API_VERSIONS: Final = frames.API_VERSIONS_KEY
_FLEXIBLE_HEADER: Final = 2
_HEADER_MIN_BYTES: Final = 10
"""The fixed part of a request header: API key, version, correlation id, length of the client id."""
CLIENT_IDS_MAX: Final = 10_000
CLIENT_ID_BYTES_MAX: Final = 256
"""Client ids that are kept as text; more, and longer ones, are read anew for each request."""
_SMALL_BYTES: Final = 1024
_WITH_RECORDS: Final = frozenset({1, 59, 78})
"""Fetch, FetchSnapshot and ShareFetch."""


class Api(NamedTuple):
    """One API as this broker serves it."""

    key: int
    name: str
    low: int
    high: int
    handle: Callable[[Any, Request], Answer]
    refuse: Callable[[Request, int, str | None], Any]
    """The API's own way to answer with one error for everything, for what a handler did not foresee."""


class Observer(Protocol):
    """Sees each request and its answer; for metrics, request logs and faults in tests."""

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None: ...  # noqa: ANN401


class Tap(Observer, Protocol):
    """An observer that sees each request before it is handled, too."""

    def received(self, request: Request, api: Api, size_bytes: int) -> None: ...


class _Version:
    """One version of an API: how it is read and written. Looked up once for all its requests."""

    __slots__ = (
        "api",
        "decode",
        "encode",
        "encode_parts",
        "has_header_tags",
        "is_heartbeat",
        "response_tags",
        "version",
    )

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.version = version
        self.is_heartbeat = api.key in HEARTBEATS
        self.decode = wire.decoder(f"{api.name}Request", version)
        self.has_header_tags = frames.request_header_version(api.key, version) == _FLEXIBLE_HEADER
        self.response_tags = b"\x00" if frames.response_header_version(api.key, version) else b""
        # Only answers with records may hold places in files; the others are cheaper in one piece.
        name = f"{api.name}Response"
        self.encode: Callable[[Any], bytes] | None = None
        self.encode_parts: Callable[[Any], list[Any]] | None = None
        if api.key in _WITH_RECORDS:
            self.encode_parts = wire.part_encoder(name, version)
        else:
            self.encode = wire.encoder(name, version)


class Dispatch:
    """Reads requests, calls handlers, writes answers. `node` is what handlers get as their first argument."""

    def __init__(
        self,
        node: Any,  # noqa: ANN401
        load: Callable[[int, bool], Api | None],
        observers: Sequence[Observer] = (),
        *,
        is_unstable: bool = False,
    ) -> None:
        """`is_unstable`: serve versions whose layout may still change, too."""
        self.node = node
        self._is_unstable = is_unstable
        self.observers = list(observers)
        self.meter: Meter | None = None
        """Measures requests while any client has a quota."""
        self.tap: Tap | None = None
        """Sees requests while somebody watches the traffic."""
        self._load = load
        self._apis: dict[int, Api] = {}
        self._versions: dict[bytes, _Version] = {}
        """By the first four bytes of a frame: API key and version."""
        self._answers: dict[int, _Version] = {}
        self._client_ids: dict[bytes, str] = {}

    def begin_tap(self, tap: Tap) -> None:
        """Show all traffic from now on."""
        self.tap = tap
        self.observers.append(tap)

    def end_tap(self) -> None:
        assert self.tap is not None
        self.observers.remove(self.tap)
        self.tap = None

    def _api(self, key: int) -> Api | None:
        api = self._load(key, self._is_unstable)
        if api is not None:
            self._apis[key] = api
        return api

    def read(self, connection: Any, frame: bytes, now_ms: int) -> tuple[Request, Api]:  # noqa: ANN401
        """The request in a frame. Raises Close for what must not be answered."""
        known = self._versions.get(frame[:4])
        if known is None or known.api.key not in connection.offered_apis or len(frame) < _HEADER_MIN_BYTES:
            return self._read_first(connection, frame, now_ms)
        api = known.api
        last = connection.repeated_heartbeat if known.is_heartbeat else None
        if last is not None and last.known is known and last.rest == frame[8:]:
            client_id = connection.client_id = last.client_id
            correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            return Request(connection, api.key, known.version, correlation_id, client_id, last.body, now_ms), api
        at = _HEADER_MIN_BYTES + (frame[8] << 8 | frame[9])
        client_id = self._client_ids.get(frame[_HEADER_MIN_BYTES:at])
        if client_id is None or at >= len(frame) or (known.has_header_tags and frame[at]):
            return self._read_first(connection, frame, now_ms)
        if known.has_header_tags:
            at += 1  # there are none
        connection.client_id = client_id
        try:
            body = known.decode(frame, at, False)
        except WireError as error:
            raise Close(str(error), CloseCause.MALFORMED_REQUEST) from None
        if known.is_heartbeat and len(frame) <= REPEATED_MAX_BYTES:
            connection.repeated_heartbeat = RepeatedHeartbeat(known, frame[8:], client_id, body)
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        return Request(connection, api.key, known.version, correlation_id, client_id, body, now_ms), api

    def _read_first(self, connection: Any, frame: bytes, now_ms: int) -> tuple[Request, Api]:  # noqa: ANN401
        """As `read`, for what it has not met before, and for what is unusual."""
        key = int.from_bytes(frame[:2], "big", signed=True)
        if len(frame) >= _HEADER_MIN_BYTES and key not in frames.api_names():
            raise Close(f"unknown API key {key}", CloseCause.API_NOT_OFFERED)
        try:
            header, at = frames.read_request_header(frame)
            client_id = connection.client_id = header.client_id or ""
            version = header.request_api_version
            api = self._apis.get(key) or self._api(key) if key in connection.offered_apis else None
            if api is None:
                raise Close(f"API key {key} is not available on this listener", CloseCause.API_NOT_OFFERED)
            if not api.low <= version <= api.high:
                return self._unserved_version(connection, header, api, now_ms), api
            known = self._versions.get(frame[:4]) or self._versions.setdefault(frame[:4], _Version(api, version))
            body = known.decode(frame, at, False)
        except WireError as error:
            raise Close(str(error), CloseCause.MALFORMED_REQUEST) from None
        if len(self._client_ids) < CLIENT_IDS_MAX and len(raw := client_id.encode()) <= CLIENT_ID_BYTES_MAX:
            self._client_ids[raw] = client_id
        return Request(connection, key, version, header.correlation_id, client_id, body, now_ms), api

    def _unserved_version(self, connection: Any, header: RequestHeader, api: Api, now_ms: int) -> Request:  # noqa: ANN401
        if api.key != _API_VERSIONS:
            reason = f"{api.name} v{header.request_api_version} is not supported ({api.low} to {api.high} are)"
            raise Close(reason, CloseCause.VERSION_NOT_SERVED)
        # A newer client than we know: its handler sees that there is no body and answers in version 0.
        client_id = header.client_id or ""
        return Request(connection, api.key, header.request_api_version, header.correlation_id, client_id, None, now_ms)

    def call(self, api: Api, request: Request) -> Answer:
        """The handler's answer. An unexpected exception becomes an error response, and a line in the log."""
        try:
            return api.handle(self.node, request)
        except Close:
            raise
        except Exception as error:  # noqa: BLE001  # a handler's mistake must not cost other clients their broker
            return self.failure(api, request, error)

    def finish(self, api: Api, request: Request, after: AfterWrite) -> Answer:
        try:
            return after.finish()
        except Close:
            raise
        except Exception as error:  # noqa: BLE001  # as in `call`
            return self.failure(api, request, error)

    def failure(self, api: Api, request: Request, error: Exception) -> Answer:
        code = getattr(error, "code", None)
        if code is None:
            log.exception("%s v%s failed", api.name, request.version)
            return api.refuse(request, wire.errors.ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return api.refuse(request, int(code), message_of(error))

    def unanswered(self, api: Api, request: Request) -> None:
        """Nothing is due for a request."""
        if request.charge is not None:
            request.charge.count_answer(None)
        for observer in self.observers:
            observer.answered(request, api, None, 0)

    def write(self, api: Api, request: Request, message: Any) -> list[Part]:  # noqa: ANN401
        """The frame of an answer, in parts."""
        charge = request.charge
        if charge is not None:
            message = charge.count_answer(message)
            started_ns = charge.now_ns()
        # An ApiVersions request that is too new is answered in version 0.
        version = request.version if request.body is not None else 0
        key = api.key << 16 | version
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = _Version(api, version)
        head = request.correlation_id.to_bytes(4, "big", signed=True) + known.response_tags
        try:
            if known.encode is not None:
                repeated = request.connection.repeated_heartbeat if known.is_heartbeat else None
                if type(message) is Encoded:
                    body = message.body
                else:
                    body = known.encode(message) if repeated is None else repeated.encoded(known, message)
                size = len(head) + len(body)
                parts: list[Part] = [size.to_bytes(4, "big") + head + body]
            else:
                assert known.encode_parts is not None
                pieces = known.encode_parts(message)
                size = len(head) + sum(map(len, pieces))
                parts = _joined(size.to_bytes(4, "big") + head, pieces)
        except WireError:
            log.exception("the response to %s v%s cannot be encoded", api.name, version)
            raise Close("its response cannot be encoded", CloseCause.UNSENDABLE_ANSWER) from None
        if charge is not None:
            charge.count_writing(started_ns)
        for observer in self.observers:
            observer.answered(request, api, message, size)
        return parts


def _joined(head: bytes, pieces: Sequence[Part]) -> list[Part]:
    """The parts of a frame, with small neighbours in one."""
    parts: list[Part] = []
    small = [head]
    for piece in pieces:
        if type(piece) is bytes and len(piece) <= _SMALL_BYTES:
            small.append(piece)
            continue
        if small:
            parts.append(b"".join(small))
            small = []
        parts.append(piece)
    if small:
        parts.append(b"".join(small))
    return parts
