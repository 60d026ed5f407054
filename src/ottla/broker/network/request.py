"""A request on its way through the broker, and the ways in which a handler answers it.

A handler gets a `Request` and returns

* a response message: it is encoded and sent;
* an `AfterWrite`: the handler has staged records; once they are written, its function gives the response;
* a `DelayedResponse`: the response comes later, through `DelayedResponse.complete`. Until then no other request of the
  connection is answered, as in Kafka;
* None: there is no response (Produce with acks=0).

A handler raises `Close` to close the connection without a response. It has a cause, for the log and the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ottla.broker.network.quotas.charges import Charge
    from ottla.broker.network.refused_batches import RefusedBatches
    from ottla.broker.network.repeated_heartbeat import RepeatedHeartbeat
    from ottla.broker.network.sasl import SaslLogin
    from ottla.wire.access import Operation, ResourceType

__all__ = ["AfterWrite", "Answer", "ClientConnection", "Close", "CloseCause", "DelayedResponse", "Peer", "Request"]


class CloseCause(StrEnum):
    """Why the broker itself closes a connection; the value is a label of the metric."""

    FRAME_SIZE = "frame-size"
    MALFORMED_REQUEST = "malformed-request"
    API_NOT_OFFERED = "api-not-offered"
    VERSION_NOT_SERVED = "version-not-served"
    FAILED_PRODUCE = "failed-produce"
    """With acks=0, where the end of the connection is the only answer."""
    UNSENDABLE_ANSWER = "unsendable-answer"
    UNFINISHED_REQUEST = "unfinished-request"
    UNREAD_ANSWERS = "unread-answers"
    IDLE = "idle"
    CONNECTIONS_PER_IP = "connections-per-ip"
    CONNECTION_RATE = "connection-rate"
    TLS = "tls"
    """Its TLS handshake failed, or what it sent was no TLS."""
    LOGIN_NEEDED = "login-needed"
    """It has sent something else, or nothing, instead of logging in."""
    FAILED_LOGIN = "failed-login"
    SHUT_OUT = "shut-out"
    """Too many logins from its address have failed."""
    SESSION_EXPIRED = "session-expired"


class Close(Exception):
    """End the connection without an answer. The text says why; there is no cause if the broker did not decide it."""

    def __init__(self, reason: str, cause: CloseCause | None) -> None:
        super().__init__(reason)
        self.cause = cause


class Peer(NamedTuple):
    """The client's address, and the listener it connected to."""

    host: str
    port: int
    listener: str


class ClientConnection(Protocol):
    """The connection that a request came by, as handlers see it."""

    peer: Peer
    principal: str
    client_id: str
    """The client id of the last request."""
    offered_apis: Collection[int]
    sasl: SaslLogin | None
    """The state of its login, on a listener with SASL."""
    is_token_login: bool
    """Whether a delegation token was logged in with."""
    client_software: tuple[str, str] | None
    """Name and version, as ApiVersions told them."""
    refused_batches: RefusedBatches | None
    """What idempotent producers have to send again; None before anything was refused."""
    repeated_heartbeat: RepeatedHeartbeat | None
    """Its last heartbeat; None before the first."""

    @property
    def is_closed(self) -> bool: ...
    def __hash__(self) -> int: ...
    def mute(self, pause_ms: int) -> None:
        """Take no further request for a while."""

    def close(self, reason: str | Close) -> None: ...


class Denial(NamedTuple):
    """Something that somebody may not do."""

    operation: Operation
    resource_type: ResourceType
    resource_name: str
    rule: str
    """The rule that denies it, or that there is none."""


class Request:
    """What a handler needs to know about a request."""

    __slots__ = (
        "api_key",
        "body",
        "charge",
        "client_id",
        "connection",
        "correlation_id",
        "denials",
        "former_configs",
        "received_at_ms",
        "version",
    )
    denials: list[Denial]
    """What its principal may not do, of all that was asked on its behalf. Not set unless there is something."""
    former_configs: dict[tuple[int, str, str], str | None]
    """Type and name of a resource, and key -> what the request changes. Not set by other requests."""

    def __init__(
        self,
        connection: ClientConnection,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str,
        body: Any,  # noqa: ANN401
        received_at_ms: int,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        self.received_at_ms = received_at_ms
        """On the clock of timers, not of records."""
        self.charge: Charge | None = None
        """What it costs, while anybody has a quota."""

    @property
    def principal(self) -> str:
        return self.connection.principal

    def deny(self, denial: Denial) -> None:
        """Note something that the principal may not do."""
        try:
            self.denials.append(denial)
        except AttributeError:
            self.denials = [denial]


class Encoded:
    """An answer that is encoded already, in the version of its request."""

    __slots__ = ("body",)

    error_code = 0

    def __init__(self, body: bytes) -> None:
        self.body = body


class DelayedResponse:
    """A response that comes later. Completing it twice, or after the connection is closed, does nothing."""

    __slots__ = ("deliver", "is_complete", "message", "on_cancel")

    def __init__(self) -> None:
        self.deliver: Callable[[Any], None] | None = None
        """Gets the response, once it is set."""
        self.message: Any = None
        """The answer, if it came before anybody said where it goes."""
        self.is_complete = False
        self.on_cancel: Callable[[], None] | None = None
        """Called when the connection goes before the answer, so that what waits can be forgotten."""

    def complete(self, message: object) -> None:
        """Set the response; None if there is none."""
        if self.is_complete:
            return
        self.is_complete = True
        if self.deliver is None:
            self.message = message
        else:
            self.deliver(message)

    def deliver_to(self, deliver: Callable[[Any], None]) -> None:
        """Set who gets the response; it is called at once if the response is ready."""
        if self.is_complete:
            deliver(self.message)
        else:
            self.deliver = deliver

    def cancel(self) -> None:
        if not self.is_complete:
            self.is_complete = True
            if self.on_cancel is not None:
                self.on_cancel()


class AfterWrite:
    """Records are staged; `finish` gives the answer once they are written."""

    __slots__ = ("finish",)

    def __init__(self, finish: Callable[[], Answer]) -> None:
        self.finish = finish


Answer = Any
"""A response message, an AfterWrite, a DelayedResponse or None."""
