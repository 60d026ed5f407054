"""A dispatch without connections, whose traffic is watched, and requests to pass through it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.loop.clock import ManualClock
from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.request import Peer, Request
from ottla.broker.telemetry.traffic import Frame, Traffic, Viewer, Wanted
from ottla.broker.telemetry.traffic_text import TrafficText, has_error
from ottla.explain.filters import make_filters
from ottla.wire.index import MESSAGES

PEER = Peer("127.0.0.1", 50_000, "PLAINTEXT")
Line = dict[str, Any]


class StillClock(ManualClock):
    """Work takes no time by it, so that a busy machine changes nothing."""

    def precise_ns(self) -> int:
        return self.monotonic_ms() * 1_000_000


class Watched:
    """Passes exchanges through a dispatch, as connections do."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.dispatch = Dispatch(SimpleNamespace(), lambda key, is_unstable: None)
        self.traffic = Traffic(self.dispatch, self.clock, has_error)
        self.text = TrafficText(1, {b"i" * 16: "orders"}.get)
        self.rendered = 0
        self._serial = 0

    def watch(self, *, client: str = "", api: str = "", errors_only: bool = False) -> Viewer:
        filters = make_filters([api] if api else [], [client] if client else [])
        return self.traffic.watch(Wanted(filters, errors_only), self._text_of, self.text.status)

    def _text_of(self, frame: Frame) -> bytes:
        self.rendered += 1
        return self.text.frame(frame)

    def ask(self, body: Any, version: int, client_id: str = "app", size_bytes: int = 0) -> tuple[Request, Api]:
        self._serial += 1
        name = type(body).__name__.removesuffix("Request")
        key = MESSAGES[f"{name}Request"].key
        assert key is not None
        connection = cast(Any, SimpleNamespace(peer=PEER, principal="User:ann"))
        request = Request(connection, key, version, self._serial, client_id, body, self.clock.monotonic_ms())
        api = Api(key, name, 0, version, cast(Any, None), cast(Any, None))
        if self.dispatch.tap is not None:
            self.dispatch.tap.received(request, api, size_bytes)
        return request, api

    def answer(self, asked: tuple[Request, Api], answer: object, size_bytes: int = 0) -> None:
        for observer in self.dispatch.observers:
            observer.answered(*asked, answer, size_bytes)

    def exchange(self, body: Any, answer: object, version: int, client_id: str = "app") -> None:
        self.answer(self.ask(body, version, client_id), answer)


def lines(viewer: Viewer) -> list[Line]:
    data = viewer.take()
    assert data is not None
    return [json.loads(line) for line in data.splitlines()]


def frames(viewer: Viewer) -> list[Line]:
    return [line for line in lines(viewer) if line["kind"] != "status"]


def status(viewer: Viewer) -> Line:
    return next(line for line in lines(viewer) if line["kind"] == "status")
