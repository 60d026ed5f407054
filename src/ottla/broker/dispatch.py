"""From a frame to its handler and from the handler's answer to a frame.

Behaviour as measured on Apache Kafka 4.3.1: a frame whose header or body cannot be read, an unknown API, a version that
is not served, and an API that the listener does not offer all end the connection without an answer. Only ApiVersions is
answered in any version, in version 0 with the error. Bytes behind a well-formed body are overlooked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from ottla import wire
from ottla.broker import handlers
from ottla.broker.handlers import SERVED
from ottla.broker.outgoing import Part
from ottla.broker.request import AfterWrite, Answer, Close, Request
from ottla.wire import WireError, frames
from ottla.wire.types.headers import RequestHeader

__all__ = ["Api", "Dispatch", "Observer", "api_of", "load_api"]

log = logging.getLogger(__name__)

_API_VERSIONS = frames.API_VERSIONS_KEY


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


def load_api(key: int) -> Api | None:
    """The API with its handler, whose module is imported now; None if there is no handler."""
    served = SERVED.get(key)
    if served is None:
        return None
    return api_of(import_module(f"{handlers.__name__}.{served.module}"))


def api_of(module: ModuleType) -> Api:
    """The API of a handler module, which has API_KEY, VERSIONS (a pair), handle and refuse."""
    key: int = module.API_KEY
    low, high = module.VERSIONS
    return Api(key, frames.api_names()[key], low, high, module.handle, module.refuse)


class Dispatch:
    """Reads requests, calls handlers, writes answers. `node` is what handlers get as their first argument."""

    def __init__(
        self,
        node: Any,  # noqa: ANN401
        load: Callable[[int], Api | None] = load_api,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.node = node
        self.observers = list(observers)
        self._load = load
        self._apis: dict[int, Api] = {}

    def _api(self, key: int) -> Api | None:
        api = self._load(key)
        if api is not None:
            self._apis[key] = api
        return api

    def read(self, connection: Any, frame: bytes, now_ms: int) -> tuple[Request, Api]:  # noqa: ANN401
        """The request in a frame. Raises Close for what must not be answered."""
        try:
            header, at = frames.read_request_header(frame)
            key = header.request_api_key
            api = self._apis.get(key) or self._api(key) if key in connection.offered_apis else None
            if api is None:
                raise Close(f"API key {key} is not offered here")
            if not api.low <= header.request_api_version <= api.high:
                return self._unserved_version(connection, header, api, now_ms), api
            body = wire.decoder(f"{api.name}Request", header.request_api_version)(frame, at, False)
        except WireError as error:
            raise Close(str(error)) from None
        return Request(connection, header, body, now_ms), api

    def _unserved_version(self, connection: Any, header: RequestHeader, api: Api, now_ms: int) -> Request:  # noqa: ANN401
        if api.key != _API_VERSIONS:
            raise Close(f"{api.name} v{header.request_api_version} is not served ({api.low} to {api.high} are)")
        # A newer client than we know: its handler sees that there is no body and answers in version 0.
        return Request(connection, header, None, now_ms)

    def call(self, api: Api, request: Request) -> Answer:
        """The handler's answer. What it did not foresee becomes the API's own error, and a line in the log."""
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
        return api.refuse(request, int(code), str(error) or None)

    def unanswered(self, api: Api, request: Request) -> None:
        """Nothing is due for a request."""
        for observer in self.observers:
            observer.answered(request, api, None, 0)

    def write(self, api: Api, request: Request, message: Any) -> list[Part]:  # noqa: ANN401
        """The frame of an answer, in parts."""
        # An ApiVersions request that is too new is answered in version 0.
        version = request.version if request.body is not None else 0
        try:
            body = wire.part_encoder(f"{api.name}Response", version)(message)
        except WireError:
            log.exception("the answer to %s v%s cannot be written", api.name, version)
            raise Close("its answer cannot be written") from None
        head = request.correlation_id.to_bytes(4, "big", signed=True)
        if frames.response_header_version(api.key, version):
            head += b"\x00"
        size = len(head) + sum(map(len, body))
        for observer in self.observers:
            observer.answered(request, api, message, size)
        return [size.to_bytes(4, "big") + head, *body]
