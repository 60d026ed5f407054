"""What can go wrong between a client and a cluster.

    ClientError
      ConfigurationError       what the caller asked for cannot be: an address, a setting, an option
      BootstrapError           none of the bootstrap servers can be used
      UnknownBrokerError       the cluster has no broker with this node id, or not at this moment
      ConnectError             no connection comes about: refused, host unknown, no TLS
        BackingOffError        ... and it is too early to try again
      ConnectionLostError      a connection ended while it was needed
      RequestTimeoutError      no answer in time
      AuthenticationError      the broker does not let us in, or does not prove who it is
      UnsupportedVersionError  the broker does not have this API, or none of the versions that we speak
      ProtocolError            the broker sent what is no answer
      ResponseError            the broker answered with an error code
        ProduceError           ... to records that were to be written
      ClosedError              the client was closed

Each message names the broker and the API. `retriable` says whether the same request may go well a moment later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.address import Address, Peer

__all__ = [
    "NO_SUCH_TOPIC",
    "AuthenticationError",
    "BackingOffError",
    "BootstrapError",
    "ClientError",
    "ClosedError",
    "ConfigurationError",
    "ConnectError",
    "ConnectionLostError",
    "ProduceError",
    "ProtocolError",
    "RequestTimeoutError",
    "ResponseError",
    "UnknownBrokerError",
    "UnsupportedVersionError",
    "check",
    "error_name",
]

NO_SUCH_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""There is no topic of this name, and with the second error there can be none."""


class ClientError(Exception):
    """Every error of this package."""

    @property
    def retriable(self) -> bool:
        """Whether the same request may go well a moment later."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own pickling would call __init__ with the finished text; Spark workers send errors by pickle.
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[ClientError], args: tuple[Any, ...], state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigurationError(ClientError, ValueError):
    """What the caller asked for cannot be."""


class BootstrapError(ClientError):
    """None of the bootstrap servers can be used; `failures` says of each one why."""

    @property
    def retriable(self) -> bool:
        return True

    def __init__(self, failures: Sequence[tuple[Address, ClientError]]) -> None:
        self.failures = tuple(failures)
        if len(self.failures) == 1:
            super().__init__(str(self.failures[0][1]))
        else:
            super().__init__("no bootstrap server can be used: " + "; ".join(str(error) for _, error in self.failures))


class UnknownBrokerError(ClientError):
    """The cluster has no broker with this node id, or not at this moment."""

    def __init__(self, node_id: int, known: Sequence[int]) -> None:
        names = ", ".join(map(str, sorted(known))) or "unknown"
        super().__init__(f"the cluster has no broker {node_id}; its brokers are {names}")
        self.node_id = node_id

    @property
    def retriable(self) -> bool:
        return True


class ConnectError(ClientError):
    """No connection comes about."""

    @property
    def retriable(self) -> bool:
        return True

    def __init__(self, peer: Peer, reason: str) -> None:
        super().__init__(f"cannot connect to {peer}: {reason}")
        self.peer = peer
        self.reason = reason


class BackingOffError(ConnectError):
    """A connection failed a moment ago, and it is too early to try again."""

    def __init__(self, peer: Peer, last: ClientError, wait_s: float) -> None:
        reason = last.reason if isinstance(last, ConnectError) else str(last)
        super().__init__(peer, f"{reason}; the next attempt is in {wait_s:.1f} s")
        self.last = last
        self.wait_s = wait_s


class ConnectionLostError(ClientError):
    """A connection ended while it was needed. Whether the broker did what was asked of it is not known."""

    @property
    def retriable(self) -> bool:
        return True

    def __init__(self, peer: Peer, reason: str) -> None:
        super().__init__(f"the connection to {peer} was lost: {reason}")
        self.peer = peer
        self.reason = reason


class RequestTimeoutError(ClientError):
    """No answer came in time. Whether the broker did what was asked of it is not known."""

    @property
    def retriable(self) -> bool:
        return True

    def __init__(self, peer: Peer, api: str, waited_ms: int) -> None:
        super().__init__(f"{peer} did not respond to {api} within {waited_ms} ms")
        self.peer = peer
        self.api = api
        self.waited_ms = waited_ms


class AuthenticationError(ClientError):
    """The broker does not let us in, or does not prove that it knows the password, too."""

    def __init__(self, peer: Peer | None, reason: str) -> None:
        where = "" if peer is None else f" at {peer}"
        super().__init__(f"authentication{where} failed: {reason}")
        self.peer = peer
        self.reason = reason


class UnsupportedVersionError(ClientError):
    """The broker does not have this API, or none of the versions that we speak, or not with these fields."""

    def __init__(self, peer: Peer | None, api: str, reason: str) -> None:
        where = "the cluster" if peer is None else str(peer)
        super().__init__(f"{api} cannot be sent to {where}: {reason}")
        self.peer = peer
        self.api = api
        self.reason = reason


class ProtocolError(ClientError):
    """The broker sent what is no answer to what it was asked.

    If it `is_out_of_step`, what follows on the connection makes no sense either.
    """

    def __init__(self, peer: Peer, reason: str, *, is_out_of_step: bool = False) -> None:
        super().__init__(f"{peer} sent an invalid response: {reason}")
        self.peer = peer
        self.reason = reason
        self.is_out_of_step = is_out_of_step


class ResponseError(ClientError):
    """The broker answered with an error code: which one, to what, and what the broker says about it.

    `code` is the number; `error` is its entry in Kafka's table, None for a code that is newer than the table.
    """

    def __init__(self, peer: Peer | None, api: str, code: int, about: str = "", message: str | None = None) -> None:
        self.peer = peer
        self.api = api
        self.code = code
        self.about = about
        self.message = message or None
        where = "" if peer is None else f" at {peer}"
        subject = f" for {about}" if about else ""
        super().__init__(f"{api}{where}{subject}: {error_name(code)} ({code}): {self.message or self.meaning}")

    @property
    def error(self) -> ErrorCode | None:
        return _known(self.code)

    @property
    def retriable(self) -> bool:
        return self.error is not None and self.error.retriable

    @property
    def meaning(self) -> str:
        return "a code unknown to this version of ottla" if self.error is None else self.error.meaning

    @property
    def remedy(self) -> str:
        return "" if self.error is None else self.error.remedy


class ProduceError(ResponseError):
    """Records that were not written. `delivered` has, in the order of what was given, a place or None for each."""

    def __init__(
        self,
        peer: Peer | None,
        code: int,
        about: str,
        message: str | None,
        delivered: Sequence[object | None] = (),
    ) -> None:
        super().__init__(peer, "Produce", code, about, message)
        self.delivered = delivered


class ClosedError(ClientError):
    """The client was closed, or not opened yet."""


def _known(code: int) -> ErrorCode | None:
    try:
        return ErrorCode(code)
    except ValueError:
        return None


def error_name(code: int) -> str:
    """The name of an error code, or a stand-in for one that is newer than our table."""
    error = _known(code)
    return "UNKNOWN_CODE" if error is None else error.name


def check(peer: Peer | None, api: str, code: int, about: str = "", message: str | None = None) -> None:
    """Raise ResponseError unless the code says that all went well."""
    if code:
        raise ResponseError(peer, api, code, about, message)
