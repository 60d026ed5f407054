"""Fronts: the listening ports of the proxy, one for each address that a cluster advertises.

The first one is for the address that the user gave. The others are opened when a response has an address for the first
time, on the next free port above the first one, so that their numbers are predictable. A port listens before `front_of`
returns it, because the client may connect at once.
"""

import errno
import socket
from collections.abc import Callable
from typing import NamedTuple

from ottla.cli.failure import EXIT_BAD_INPUT, EXIT_REFUSED, Failure
from ottla.cli.proxy.address import PORT_MAX, Address

FRONTS_MAX = 512
"""Further addresses are not rewritten: no cluster that is watched with a proxy has so many nodes."""
PORTS_TRIED = 64
BACKLOG = 128
WILDCARDS = ("0.0.0.0", "::", "")


class Front(NamedTuple):
    """A listening socket and the target of its connections."""

    listener: socket.socket
    at: Address
    upstream: Address
    node_id: int | None
    """None for the address that the user gave, whose node is unknown."""


class Fronts:
    """`opened` is called with each new front, `left_out` with each address that gets none."""

    def __init__(
        self,
        first: Address,
        upstream: Address,
        opened: Callable[[Front], None],
        left_out: Callable[[Address], None],
    ) -> None:
        self._opened = opened
        self._left_out = left_out
        self._by_upstream: dict[Address, Front] = {}
        self._next_port = 0
        try:
            listener = listen(first)
        except OSError as refusal:
            code = EXIT_REFUSED if refusal.errno == errno.EADDRINUSE else EXIT_BAD_INPUT
            raise Failure(
                f"cannot listen on {first}: {refusal.strerror or refusal}", "choose another --listen", code=code
            ) from None
        self.first = self._add(listener, first.host, upstream, None)
        self._next_port = self.first.at.port + 1

    def front_of(self, host: str, port: int, node_id: int, seen_as: str) -> tuple[str, int]:
        """The address of the front for a node, for a client that has connected to the host `seen_as`."""
        upstream = Address(host, port)
        front = self._by_upstream.get(upstream) or self._open(upstream, node_id)
        if front is None:
            return host, port
        return seen_as if front.at.host in WILDCARDS else front.at.host, front.at.port

    def close(self) -> None:
        for front in self._by_upstream.values():
            front.listener.close()

    def _open(self, upstream: Address, node_id: int) -> Front | None:
        if len(self._by_upstream) >= FRONTS_MAX:
            self._left_out(upstream)
            return None
        return self._add(self._listen_nearby(), self.first.at.host, upstream, node_id)

    def _listen_nearby(self) -> socket.socket:
        host = self.first.at.host
        for port in range(self._next_port, min(self._next_port + PORTS_TRIED, PORT_MAX)):
            try:
                listener = listen(Address(host, port))
            except OSError:  # taken by someone else
                continue
            self._next_port = port + 1
            return listener
        return listen(Address(host, 0))

    def _add(self, listener: socket.socket, host: str, upstream: Address, node_id: int | None) -> Front:
        front = Front(listener, Address(host, listener.getsockname()[1]), upstream, node_id)
        self._by_upstream[upstream] = front
        self._opened(front)
        return front


def listen(address: Address) -> socket.socket:
    """A socket that listens on the address. Raises OSError if that fails."""
    family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    listener = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener
