"""Requests to other brokers, by broker id.

There is one connection for each broker and API, made when it is first needed: a broker handles the requests of a
connection one after the other, so that one that waits there would hold up those of another kind. A connection ends
when its broker is fenced, unregistered or found at another address; what is not answered fails then, so that whoever
asks looks for the new leader at once, and not when the time for an answer is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.peers.peer_connection import Address, PeerConnection, PeerError

if TYPE_CHECKING:
    from ottla.core.metadata.image import MetadataImage

__all__ = ["BrokerConnections", "Brokers"]

Done = Callable[[Any], None]
"""Takes the response, or a PeerError."""


class Brokers(Protocol):
    """The other brokers, as whoever sends them requests sees them."""

    def send(self, broker_id: int, request: object, versions: tuple[int, int], done: Done) -> None:
        """Send a request to a broker; `done` gets the response or a PeerError, and never before this returns."""


class _Loop(Protocol):
    def call_soon(self, callback: Callable[[], Any]) -> Any: ...  # noqa: ANN401


class BrokerConnections:
    """Connections to the brokers of a cluster, except for those of the quorum and of replication."""

    def __init__(
        self,
        loop: _Loop,
        image: MetadataImage,
        address_of: Callable[[int], Address | None],
        connect: Callable[[Address], PeerConnection],
    ) -> None:
        self._loop = loop
        self._image = image
        self._address_of = address_of
        self._connect = connect
        self._connections: dict[tuple[int, type], PeerConnection] = {}

    def send(self, broker_id: int, request: object, versions: tuple[int, int], done: Done) -> None:
        """Send a request to a broker; `done` gets the response or a PeerError, and never before this returns."""
        key = (broker_id, type(request))
        connection = self._connections.get(key)
        if connection is None:
            address = self._address(broker_id)
            if address is None:
                self._loop.call_soon(lambda: done(PeerError(f"broker {broker_id} is not available")))
                return
            connection = self._connections[key] = self._connect(address)
        connection.send(request, versions, done)

    def _address(self, broker_id: int) -> Address | None:
        broker = self._image.brokers.get(broker_id)
        return None if broker is None or broker.fenced else self._address_of(broker_id)

    def follow(self, changed: Collection[int]) -> None:
        """Brokers have registered, or were fenced or unfenced."""
        for (broker_id, kind), connection in list(self._connections.items()):
            if broker_id in changed and self._address(broker_id) != connection.address:
                del self._connections[broker_id, kind]
                connection.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
