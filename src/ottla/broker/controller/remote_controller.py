"""The active controller on another node, and the connection to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ottla.broker.controller.forwarding import error_codes, pack, read_answer
from ottla.broker.peers.peer_connection import Address, PeerConnection, PeerError
from ottla.wire import WireError
from ottla.wire.errors import ErrorCode
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from ottla.broker.network.request import Request
    from ottla.wire.types.envelope import EnvelopeResponse

__all__ = ["RemoteController"]

log = logging.getLogger(__name__)

Done = Callable[[Any], None]
"""Takes the reply; None if no controller has given one; ErrorCode if the controller does not take the envelope."""

_ENVELOPE_VERSIONS: Final = (0, 0)
_LOWEST: Final[dict[type, int]] = {BrokerHeartbeatRequest: 1}
"""Requests that controllers of Apache Kafka before 4.3 know in a lower version only."""
_CORDONED_FROM: Final = 2


class RemoteController:
    """Sends requests to the active controller of another node."""

    def __init__(self, address: Callable[[], Address | None], connect: Callable[[Address], PeerConnection]) -> None:
        """`address` says where the active controller listens: None if it is on this node, or not known."""
        self._address = address
        self._connect = connect
        self._connection: PeerConnection | None = None

    def submit(
        self, request: object, api_version: int, done: Done, *, client: Request | None, timeout_s: float
    ) -> None:
        """Send a request of this node, or of a client of it."""
        address = self._address()
        if address is None:
            done(None)
            return
        connection = self._connection
        if connection is None or connection.address != address:
            self.close()
            connection = self._connection = self._connect(address)
        if client is None:
            versions = (min(api_version, _LOWEST.get(type(request), api_version)), api_version)
            connection.send(request, versions, partial(_replied, done), timeout_s=timeout_s, fit=_in_version)
        else:
            opened = partial(_opened, request, api_version, done)
            connection.send(pack(request, api_version, client), _ENVELOPE_VERSIONS, opened, timeout_s=timeout_s)

    def controller_changed(self) -> None:
        """Let go of a node that is not the controller any more: what it has not answered fails.

        It may be silent for long. While no other is known it stays, since it may only be out of the quorum's reach.
        """
        address = self._address()
        if self._connection is not None and address not in (None, self._connection.address):
            self.close()

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _in_version(request: Any, version: int) -> Any:  # noqa: ANN401
    """The request without what a version has no field for."""
    if isinstance(request, BrokerHeartbeatRequest) and version < _CORDONED_FROM:
        return replace(request, cordoned_log_dirs=None)
    return request


def _replied(done: Done, reply: Any) -> None:  # noqa: ANN401
    done(None if isinstance(reply, PeerError) or _is_from_another(reply) else reply)


def _is_from_another(reply: Any) -> bool:  # noqa: ANN401
    """Whether whoever replied is not the controller. Where a reply has an error of its own, those in it mean less."""
    whole = getattr(reply, "error_code", None)
    return ErrorCode.NOT_CONTROLLER in (error_codes(reply) if whole is None else (whole,))


def _opened(request: object, api_version: int, done: Done, reply: EnvelopeResponse | PeerError) -> None:
    if isinstance(reply, PeerError) or reply.error_code == ErrorCode.NOT_CONTROLLER:
        done(None)
        return
    code = ErrorCode(reply.error_code)
    if not code:
        try:
            done(read_answer(reply.response_data or b"", request, api_version))
        except WireError as error:
            log.warning("the controller's answer to a forwarded request cannot be read: %s", error)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
    if code:
        log.warning("the controller rejected a forwarded %s: %s", type(request).__name__, code.name)
        done(code)
