"""A connection without a node: one end is the test's."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ottla.broker.network.connection import Connection, ConnectionLimits, Peer
from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.listener_security import PLAINTEXT, ListenerSecurity
from ottla.broker.network.request import Answer, Request
from ottla.wire import frames
from ottla.wire.types import HeartbeatRequest, HeartbeatResponse
from tests.unit.broker.network.fake_loop import FakeLoop, FakeOwner

HEARTBEAT = 12
NO_LIMITS = ConnectionLimits()
FETCH = 1


class Bench:
    """A connection, the other end of its socket, and a handler that the test sets."""

    def __init__(
        self,
        handle: Callable[[Any, Request], Answer],
        *,
        key: int = HEARTBEAT,
        limits: ConnectionLimits = NO_LIMITS,
        security: ListenerSecurity = PLAINTEXT,
    ) -> None:
        self.loop, self.owner = FakeLoop(), FakeOwner()
        self.client, server = socket.socketpair()
        self.client.settimeout(5)
        server.setblocking(False)
        api = Api(key, frames.api_names()[key], 0, 4, handle, refuse)
        self.fd = server.fileno()
        self.connection = Connection(
            self.loop,
            server,
            Peer("127.0.0.1", 1, "PLAINTEXT"),
            self.owner,
            Dispatch(SimpleNamespace(), lambda each, _: {key: api}.get(each)),
            offered_apis={key},
            limits=limits,
            security=security,
        )

    def send(self, *correlation_ids: int) -> None:
        self.client.sendall(b"".join(heartbeat(number) for number in correlation_ids))
        self.turn()

    def turn(self) -> None:
        """What the loop would call now."""
        if self.fd in self.loop.readers:
            self.loop.readers[self.fd]()

    def answers(self, count: int) -> list[int]:
        """The correlation ids of the next answers."""
        found = []
        for _ in range(count):
            size = int.from_bytes(self.receive(4), "big")
            found.append(int.from_bytes(self.receive(size)[:4], "big"))
        return found

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.client.recv(size - len(data))
            assert piece, "the connection was closed"
            data += piece
        return data

    def is_silent(self) -> bool:
        self.client.setblocking(False)
        try:
            return self.client.recv(1) is None
        except BlockingIOError:
            return True
        finally:
            self.client.settimeout(5)


def heartbeat(correlation_id: int) -> bytes:
    return frames.write_request(HeartbeatRequest(group_id="g"), 4, correlation_id=correlation_id, client_id="c")


def refuse(_request: Request, code: int, _message: str | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def answer_at_once(_node: Any, _request: Request) -> Answer:
    return HeartbeatResponse()


def fetch_request() -> Any:
    from ottla.wire.types import FetchRequest

    return FetchRequest()
