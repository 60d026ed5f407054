"""A listener: accepts connections, within limits, and closes those that have gone quiet.

Limits as Kafka has them: too many connections from one address are closed at once; when the listener as a whole is
full, new ones wait unaccepted in the socket's backlog.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.broker.network.addresses import address_text
from ottla.broker.network.connection import Connection, ConnectionLimits, Loop, Owner, Peer
from ottla.broker.network.dispatch import Dispatch
from ottla.broker.network.listener_security import PLAINTEXT, ListenerSecurity
from ottla.broker.network.quotas.quotas import ConnectionRates
from ottla.broker.network.request import Close, CloseCause
from ottla.core.metadata.config_values import host_limits

__all__ = ["ConnectionCount", "Listener", "ListenerLimits", "bind"]

log = logging.getLogger(__name__)

ACCEPTS_PER_TURN: Final = 64
"""More than this wait for the next turn of the loop, so that a flood does not starve connected clients."""
ACCEPT_AGAIN_SECONDS: Final = 0.2
"""The pause when no file is left for a connection. The socket stays ready, so the loop would call again at once."""


class ConnectionCount:
    """The number of connections of all listeners together, and its limit."""

    def __init__(self, limit: int = 2**31 - 1) -> None:
        self.limit = limit
        self.count = 0

    @property
    def is_full(self) -> bool:
        return self.count >= self.limit


LOGIN_MAX_MS: Final = 30_000
"""How long a TLS handshake and a login may take together."""
HELD_MAX: Final = 1000
"""Connections beyond their address's rate that are held before they are closed; more are closed at once."""


class _Creations:
    """How many connections were accepted in the running second."""

    def __init__(self) -> None:
        self._second = 0
        self._count = 0

    def add(self) -> None:
        self._count += 1

    def is_over(self, rate: int, now_ms: int) -> bool:
        """Whether no more may be accepted now."""
        if now_ms // 1000 != self._second:
            self._second, self._count = now_ms // 1000, 0
        return self._count >= rate


class ListenerLimits(NamedTuple):
    creation_rate: int = 2**31 - 1
    """Connections that are accepted in a second."""
    connections_max: int = 2**31 - 1
    connections_per_ip_max: int = 2**31 - 1
    overrides: Mapping[str, int] = MappingProxyType({})
    """Addresses with another limit than `connections_per_ip_max`."""
    idle_max_ms: int = 600_000
    backlog: int = 50
    connection: ConnectionLimits = ConnectionLimits()


def address_limits(text: str) -> dict[str, int]:
    """Limits of single addresses, from text such as `10.0.0.5:100,localhost:20`; names stand for their addresses."""
    found: dict[str, int] = {}
    for host, limit in host_limits(text).items():
        try:
            places = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            log.warning("max.connections.per.ip.overrides: the address of %s is unknown", host)
            continue
        found.update((address_text(str(place[4][0])), limit) for place in places)
    return found


def bind(host: str, port: int, backlog: int) -> socket.socket:
    """A listening socket; OSError names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror}") from error
    return sock


class Listener:
    def __init__(
        self,
        name: str,
        loop: Loop,
        sock: socket.socket,
        owner: Owner,
        dispatch: Dispatch,
        *,
        offered_apis: Collection[int],
        limits: ListenerLimits = ListenerLimits(),  # noqa: B008  # a constant
        connection_count: ConnectionCount | None = None,
        security: ListenerSecurity = PLAINTEXT,
    ) -> None:
        self.name = name
        self.security = security
        """How new connections are secured."""
        self.connections: dict[Connection, None] = {}
        self._loop = loop
        self._sock = sock
        self._owner = owner
        self._dispatch = dispatch
        self._offered_apis = offered_apis
        self._limits = limits
        self._connection_count = connection_count or ConnectionCount()
        self._by_host: Counter[str] = Counter()
        self._is_accepting = False
        self._held: dict[socket.socket, None] = {}
        self._creations = _Creations()
        self.connection_rates: ConnectionRates | None = None
        """How fast addresses may open connections, while any has a limit."""

    def change_limits(self, limits: ListenerLimits) -> None:
        """Act on other limits from now on; connections that are there stay as they are."""
        self._limits = limits
        if self._sock.fileno() != -1:
            self._watch(True)  # there may be room now

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._sock.getsockname()[:2]
        return host, port

    def start(self) -> None:
        self._watch(True)

    def _watch(self, wanted: bool) -> None:
        if wanted != self._is_accepting:
            self._is_accepting = wanted
            if wanted:
                self._loop.add_reader(self._sock.fileno(), self._accept)
            else:
                self._loop.remove_reader(self._sock.fileno())

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if self._creations.is_over(self._limits.creation_rate, self._owner.monotonic_ms()):
                self._rest()
                return
            if len(self.connections) >= self._limits.connections_max:
                self._watch(False)  # until one of them goes
                return
            if self._connection_count.is_full:
                log.warning(
                    "no file descriptors are left beyond %d connections; others wait", self._connection_count.count
                )
                self._rest()
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # out of files, or the peer is gone already
                log.warning("listener %s could not accept: %s", self.name, error)
                self._rest()
                return
            self._creations.add()
            self._admit(sock, Peer(address_text(address[0]), address[1], self.name))

    def _rest(self) -> None:
        self._watch(False)
        self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again)

    def _accept_again(self) -> None:
        if self._sock.fileno() != -1:
            self._watch(True)

    def _is_too_fast(self, sock: socket.socket, peer: Peer) -> bool:
        """Whether its address opens connections too fast; then it is held for a while and closed."""
        if self.connection_rates is None:
            return False
        pause_ms = self.connection_rates.record(peer.host, self._owner.monotonic_ms())
        if not pause_ms:
            return False
        self._refuse(peer, "its address exceeds the connection rate quota", CloseCause.CONNECTION_RATE)
        if len(self._held) >= HELD_MAX:
            sock.close()
        else:
            self._held[sock] = None
            self._loop.call_later(pause_ms / 1000, lambda: self._let_go(sock))
        return True

    def _refuse(self, peer: Peer, reason: str, cause: CloseCause) -> None:
        self._owner.closed_connections.add(peer, "", Close(reason, cause))

    def _let_go(self, sock: socket.socket) -> None:
        self._held.pop(sock, None)
        sock.close()

    def _admit(self, sock: socket.socket, peer: Peer) -> None:
        if self._is_too_fast(sock, peer):
            return
        if self._owner.logins.is_shut_out(peer):
            self._refuse(peer, "too many failed logins from its address", CloseCause.SHUT_OUT)
            sock.close()
            return
        if self._by_host[peer.host] >= self._limits.overrides.get(peer.host, self._limits.connections_per_ip_max):
            self._refuse(peer, "too many connections from its address", CloseCause.CONNECTIONS_PER_IP)
            sock.close()
            return
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._by_host[peer.host] += 1
        self._connection_count.count += 1
        connection = Connection(
            self._loop,
            sock,
            peer,
            self._owner,
            self._dispatch,
            offered_apis=self._offered_apis,
            limits=self._limits.connection,
            security=self.security,
        )
        self.connections[connection] = None

    def forget(self, connection: Connection) -> None:
        """A connection was closed."""
        if connection in self.connections:
            del self.connections[connection]
            self._connection_count.count -= 1
            self._by_host[connection.peer.host] -= 1
            if not self._by_host[connection.peer.host]:
                del self._by_host[connection.peer.host]
        if self._sock.fileno() != -1:
            self._watch(True)

    def close_idle(self, now_ms: int) -> None:
        """Close those that have said nothing for too long and wait for nothing, or do not take what they asked for.

        A negative bound, as Kafka takes it, is none.
        """
        idle_max_ms = self._limits.idle_max_ms
        for connection in list(self.connections):
            is_late = not connection.is_known and now_ms - connection.opened_ms > LOGIN_MAX_MS
            is_idle = not connection.is_waiting and 0 <= idle_max_ms < now_ms - connection.last_active_ms
            if is_late or is_idle:
                connection.close_idle()

    def stop_accepting(self) -> None:
        if self._sock.fileno() != -1:
            self._watch(False)
            self._is_accepting = True  # never again
            self._sock.close()
        for held in list(self._held):
            self._let_go(held)

    def drain(self) -> None:
        """Answer what was asked and close."""
        for connection in list(self.connections):
            connection.drain()

    def close(self) -> None:
        self.stop_accepting()
        for connection in list(self.connections):
            connection.close("the node is stopping")
