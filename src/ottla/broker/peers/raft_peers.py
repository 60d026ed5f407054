"""The connections of a voter to the others: one to each address, for the messages of the quorum alone.

A connection that is refused means that the process at the other end is dead: that is told at once, long before the
other end would be missed, and once for each death.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ottla.broker.peers.peer_connection import Address, PeerConnection, PeerError, PeerEvent
from ottla.core.quorum.events import Destination
from ottla.core.quorum.stored import NOBODY
from ottla.wire import versions

__all__ = ["RaftPeers"]

_FETCH_FROM: Final = 13
"""The metadata log is named by its topic's id."""

Connect = Callable[[Address, Callable[[PeerEvent], None], float], PeerConnection]
"""Address, whom to tell of events, and how many seconds an answer may take."""


class RaftPeers:
    """The connections to other voters."""

    def __init__(self, connect: Connect, gone: Callable[[int], None], timeout_s: float) -> None:
        """`gone` gets the id of a node whose process is dead."""
        self._connect = connect
        self._timeout_s = timeout_s
        self._gone = gone
        self._connections: dict[Address, PeerConnection] = {}
        self._node_ids: dict[Address, int] = {}
        self._gone_addresses: set[Address] = set()
        """Where no process was, when a connection was last tried."""

    def send(self, to: Destination, request: Any, done: Callable[[Any], None]) -> None:  # noqa: ANN401
        address = Address(to.host, to.port)
        if to.node_id != NOBODY:
            self._node_ids[address] = to.node_id
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = self._connect(
                address, partial(self._told, address), self._timeout_s
            )
        name = type(request).__name__
        known = versions(name)
        served = (_FETCH_FROM if name == "FetchRequest" else known[0], known[-1])
        connection.send(request, served, lambda response: done(None if isinstance(response, PeerError) else response))

    def found(self, node_id: int) -> None:
        """A node is known to be there, whatever became of earlier connections to it."""
        for address, connection in self._connections.items():
            if self._node_ids.get(address) == node_id:
                connection.forget_failures()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _told(self, address: Address, event: PeerEvent) -> None:
        if event is not PeerEvent.REFUSED:
            self._gone_addresses.discard(address)
        elif address not in self._gone_addresses and address in self._node_ids:
            self._gone_addresses.add(address)
            self._gone(self._node_ids[address])
