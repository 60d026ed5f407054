"""What a connection needs of a loop and a node, without either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.network.closed_connections import ClosedConnections
from ottla.broker.network.connection import Connection
from ottla.broker.network.handshake_turns import HandshakeTurns
from ottla.broker.network.login_failures import LoginFailures
from ottla.broker.network.logins import Logins


class Timer:
    """A call that the test makes, or that was cancelled."""

    def __init__(self, seconds: float, callback: Callable[[], Any]) -> None:
        self.seconds = seconds
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """Remembers who watches what; the test calls the callbacks."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], Any]] = {}
        self.writers: dict[int, Callable[[], Any]] = {}
        self.queued: list[Callable[[], Any]] = []
        self.timers: list[Timer] = []

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.queued.append(callback)

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Timer:
        self.timers.append(Timer(delay, callback))
        return self.timers[-1]

    def run_queued(self) -> None:
        queued, self.queued = self.queued, []
        for callback in queued:
            callback()

    def add_reader(self, fd: int, callback: Callable[[], Any]) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> bool:
        return self.readers.pop(fd, None) is not None

    def add_writer(self, fd: int, callback: Callable[[], Any]) -> None:
        self.writers[fd] = callback

    def remove_writer(self, fd: int) -> bool:
        return self.writers.pop(fd, None) is not None


class FakeOwner:
    def __init__(self) -> None:
        self.now_ms = 0
        self.writes = 0
        self.closed: list[Connection] = []
        self.closed_connections = ClosedConnections()
        self.logins = Logins(LoginFailures(), self.monotonic_ms, lambda event, fields: None)
        self.handshake_turns = HandshakeTurns(FakeLoop(), lambda: 0)

    def monotonic_ms(self) -> int:
        return self.now_ms

    def write_staged(self) -> None:
        self.writes += 1

    def connection_closed(self, connection: Connection) -> None:
        self.closed.append(connection)
