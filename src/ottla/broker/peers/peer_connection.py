"""A connection from this node to another one: requests out, responses in, in order.

Theory of operation. `send` queues a request and connects if need be. A new connection first asks for the versions that
the other end serves and logs in, if a login is given; then requests leave as they come, up to `IN_FLIGHT_MAX` before
the first is answered, and each goes in the highest version that both ends know. When the connection ends, everything
sent or queued on it fails, and the next attempt waits: 50 ms, twice as long after each failure up to half a second,
with jitter. Whoever wants a request repeated repeats it.

What the node learns about the other end is told as an event: it has closed the connection, refused one, or been silent
for longer than a request may take. Only a refusal says that its process is gone.

A response is received into memory of its own size, so that records are not copied on the way.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.loop.randomness import Randomness
from ottla.security.tls_socket import TlsSocket
from ottla.wire import WireError, frames
from ottla.wire.errors import ErrorCode
from ottla.wire.index import MESSAGES
from ottla.wire.types.api_versions import ApiVersionsRequest

__all__ = ["Address", "Dial", "Login", "NotServed", "PeerConnection", "PeerError", "PeerEvent", "dial", "no_login"]

log = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 5
QUEUED_MAX: Final = 1000
"""Requests that wait for a connection or for their turn; more are refused."""
BACKOFF_SECONDS: Final = 0.05
BACKOFF_MAX_SECONDS: Final = 0.5
"""Short enough that a node whose link works again is back within a second."""
_JITTER: Final = 0.2
_SESSION_SHARE: Final = 0.85
"""Which part of a session is used; Kafka's clients log in anew after 85 to 95 %."""
_RENEW_AGAIN_SECONDS: Final = 0.005
_ABORT: Final = struct.pack("ii", 1, 0)
_API_VERSIONS: Final = 18
_API_VERSIONS_VERSION: Final = 3


class PeerEvent(Enum):
    """What a connection has learned about the other end."""

    CLOSED = "it has closed the connection"
    REFUSED = "connection refused"
    SILENT = "it has not answered in time"


class PeerError(Exception):
    """A request was not answered; whether it arrived is not known."""


class NotServed(PeerError):
    """The other end knows no version of the request that would do: it was not sent."""


class Address(NamedTuple):
    host: str
    port: int


class Loop(Protocol):
    """What is needed of an event loop."""

    def time(self) -> float: ...
    def call_later(self, delay: float, callback: Callable[[], Any]) -> Any: ...  # noqa: ANN401
    def add_reader(self, fd: int, callback: Callable[[], Any]) -> None: ...
    def remove_reader(self, fd: int) -> bool: ...
    def add_writer(self, fd: int, callback: Callable[[], Any]) -> None: ...
    def remove_writer(self, fd: int) -> bool: ...


Dial = Callable[[Address], Any]
"""Begins to connect without waiting; gives a socket or a TlsSocket."""
Conversation = Generator[tuple[object, tuple[int, int]], Any, int]
Login = Callable[[], Conversation]
"""Logs in to a new connection: yields each request with the versions it may have, is sent the response, and returns for
how many milliseconds the session lasts, 0 for ever. Raises PeerError if it is refused. SASL comes in here."""
Done = Callable[[Any], None]
"""Takes the response, or a PeerError."""
Fit = Callable[[Any, int], Any]
"""Makes of a request what it is in a version."""


def no_login() -> Conversation:
    """The other end knows this node by its address or its certificate, or asks nobody."""
    yield from ()
    return 0


def dial(address: Address) -> socket.socket:
    """Begin a TCP connection."""
    sock = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    code = sock.connect_ex(address)
    if code not in (0, errno.EINPROGRESS):
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock


class _Exchange:
    """A request and whom its response is for."""

    __slots__ = ("done", "fit", "key", "request", "timer", "version", "versions")

    def __init__(self, request: object, versions: tuple[int, int], done: Done, fit: Fit | None = None) -> None:
        entry = MESSAGES[type(request).__name__]
        assert entry.key is not None
        self.key: int = entry.key
        self.request = request
        self.versions = versions
        self.version = versions[1]
        self.done = done
        self.fit = fit
        self.timer: Any = None


class PeerConnection:
    """Requests to one end point of another node. It connects when there is something to send."""

    def __init__(
        self,
        loop: Loop,
        address: Address,
        client_id: str,
        *,
        randomness: Randomness,
        told: Callable[[PeerEvent], None] = lambda event: None,
        dial: Dial = dial,
        login: Login = no_login,
        timeout_s: float,
    ) -> None:
        self._loop = loop
        self.address = address
        self._client_id = client_id
        self._randomness = randomness
        self._told = told
        self._dial = dial
        self._login = login
        self._timeout_s = timeout_s
        self._sock: socket.socket | TlsSocket | None = None
        self._served: dict[int, tuple[int, int]] | None = None
        """The versions that the other end serves, once it has said so."""
        self._is_ready = False
        self._queued: deque[_Exchange] = deque()
        self._in_flight: deque[_Exchange] = deque()
        self._unsent = bytearray()
        self._is_writing = False
        """Whether the loop tells when more can be sent."""
        self._serial = 0
        self._size = bytearray()
        self._frame: memoryview | None = None
        self._received_bytes = 0
        self._failures = 0
        self._retry: Any = None
        self._opening: Any = None
        """Ends a connection that is not ready in time."""
        self._renewing: Any = None
        """Logs in anew before a session ends."""
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether requests can leave: the versions are known, and this node is logged in."""
        return self._is_ready

    def send(
        self,
        request: object,
        versions: tuple[int, int],
        done: Done,
        *,
        timeout_s: float | None = None,
        fit: Fit | None = None,
    ) -> None:
        """Send a request in the highest version of a range that the other end serves.

        `done` is called once, with the response or a PeerError, and never before this returns.
        """
        exchange = _Exchange(request, versions, done, fit)
        if self._is_closed or len(self._queued) >= QUEUED_MAX:
            reason = "the connection is closed" if self._is_closed else f"{QUEUED_MAX} requests are waiting already"
            self._loop.call_later(0, lambda: done(PeerError(f"{self._name}: {reason}")))
            return
        exchange.timer = self._loop.call_later(timeout_s or self._timeout_s, lambda: self._expire(exchange))
        self._queued.append(exchange)
        if self._sock is None and self._retry is None:
            self._retry = self._loop.call_later(0, self._connect)
        elif self.is_ready:
            self._send_queued()

    def forget_failures(self) -> None:
        """The other end is known to be there: do not wait any longer to connect."""
        self._failures = 0
        if self._sock is None and self._retry is not None:
            self._retry.cancel()
            self._retry = self._loop.call_later(0, self._connect)

    def close(self) -> None:
        """End it; what is not answered fails."""
        self._is_closed = True
        self._end("this node has closed the connection")

    @property
    def _name(self) -> str:
        return f"{self.address.host}:{self.address.port}"

    # --- connecting ---------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._retry = None
        if self._is_closed or not self._queued:
            return
        try:
            self._sock = self._dial(self.address)
        except OSError as error:
            self._failed_to_connect(error)
            return
        self._opening = self._loop.call_later(self._timeout_s, self._silent)
        self._loop.add_writer(self._sock.fileno(), self._connected)

    def _connected(self) -> None:
        assert self._sock is not None
        self._loop.remove_writer(self._sock.fileno())
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._failed_to_connect(OSError(code, os.strerror(code)))
            return
        self._loop.add_reader(self._sock.fileno(), self._readable)
        self._put_first(ApiVersionsRequest("ottla", "1"), (0, _API_VERSIONS_VERSION), self._greeted)

    def _put_first(self, request: object, versions: tuple[int, int], done: Done) -> None:
        """Send one of the requests with which a connection begins; `_opening` limits the time of all of them."""
        exchange = _Exchange(request, versions, done)
        if self._served is None or self._choose_version(exchange):
            self._put(exchange)
        else:
            self._end(self._not_served(exchange))

    def _failed_to_connect(self, error: OSError) -> None:
        if error.errno == errno.ECONNREFUSED:
            self._told(PeerEvent.REFUSED)
        self._end(f"it cannot be reached: {error.strerror or error}")

    def _greeted(self, response: Any) -> None:  # noqa: ANN401
        if isinstance(response, PeerError):
            return
        if response.error_code:
            self._end(f"it rejected ApiVersions: {ErrorCode(response.error_code).name}")
            return
        self._served = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        self._log_in(self._login(), None)

    def _log_in(self, login: Conversation, response: Any) -> None:  # noqa: ANN401
        """Go on with a login after a response."""
        if isinstance(response, PeerError):
            return
        try:
            request, versions = login.send(response)
        except StopIteration as end:
            self._opening.cancel()
            self._failures = 0
            self._is_ready = True
            if end.value:
                self._renewing = self._loop.call_later(end.value / 1000 * _SESSION_SHARE, self._renew)
            self._send_queued()
        except PeerError as error:
            log.warning("cannot log in at %s: %s", self._name, error, extra={"cause": self._name})
            self._end(str(error))
        else:
            self._put_first(request, versions, lambda answer: self._log_in(login, answer))

    def _renew(self) -> None:
        """Log in anew, when all that was sent is answered; the session ends soon."""
        self._is_ready = False
        if self._in_flight:
            self._renewing = self._loop.call_later(_RENEW_AGAIN_SECONDS, self._renew)
        else:
            self._opening = self._loop.call_later(self._timeout_s, self._silent)
            self._log_in(self._login(), None)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send_queued(self) -> None:
        while self._is_ready and self._queued and len(self._in_flight) < IN_FLIGHT_MAX:
            exchange = self._queued.popleft()
            if self._choose_version(exchange):
                self._put(exchange)
            else:
                self._finish(exchange, NotServed(f"{self._name}: {self._not_served(exchange)}"))

    def _choose_version(self, exchange: _Exchange) -> bool:
        """Whether both ends know a version of a request; it gets the highest."""
        assert self._served is not None
        low, high = self._served.get(exchange.key, (0, -1))
        exchange.version = min(high, exchange.versions[1])
        return exchange.version >= max(low, exchange.versions[0])

    @staticmethod
    def _not_served(exchange: _Exchange) -> str:
        return f"it does not support {type(exchange.request).__name__.removesuffix('Request')} {exchange.versions}"

    def _put(self, exchange: _Exchange) -> None:
        self._serial += 1
        self._in_flight.append(exchange)
        request, version = exchange.request, exchange.version
        self._unsent += frames.write_request(
            request if exchange.fit is None else exchange.fit(request, version),
            version,
            correlation_id=self._serial,
            client_id=self._client_id,
        )
        self._flush()

    def _flush(self) -> None:
        sock = self._sock
        if sock is None:
            return
        try:
            while self._unsent:
                sent = sock.send(self._unsent)
                del self._unsent[:sent]
            if isinstance(sock, TlsSocket):
                sock.flush()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lost(f"sending failed: {error}")
            return
        self._watch_writing(sock, bool(self._unsent) or (isinstance(sock, TlsSocket) and sock.has_unsent))

    def _watch_writing(self, sock: socket.socket | TlsSocket, wanted: bool) -> None:
        if wanted != self._is_writing:
            self._is_writing = wanted
            if wanted:
                self._loop.add_writer(sock.fileno(), self._flush)
            else:
                self._loop.remove_writer(sock.fileno())

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        sock = self._sock
        self._read()
        while isinstance(sock, TlsSocket) and sock is self._sock and sock.has_more:
            self._read()
        if isinstance(sock, TlsSocket) and sock is self._sock and sock.has_unsent:
            self._flush()

    def _read(self) -> None:
        """Read of the next response what has come, in one turn: a late deadline must find it."""
        assert self._sock is not None
        count = -1
        try:
            if self._frame is None:
                piece = self._sock.recv(frames.SIZE_BYTES - len(self._size))
                self._size += piece
                if len(self._size) == frames.SIZE_BYTES:
                    self._begin_frame()
                count = len(piece)
            if count and self._frame is not None:
                count = self._sock.recv_into(self._frame[self._received_bytes :])
                self._received_bytes += count
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, WireError) as error:
            self._lost(f"receiving failed: {error}")
            return
        if not count:
            self._lost("it has closed the connection")
        elif self._frame is not None and self._received_bytes == len(self._frame):
            self._end_frame()

    def _begin_frame(self) -> None:
        size = int.from_bytes(self._size, "big", signed=True)
        if not 0 < size <= frames.FRAME_MAX_BYTES:
            raise WireError("Size", None, f"a frame of {size} bytes")
        self._frame, self._received_bytes = memoryview(bytearray(size)), 0
        self._size.clear()

    def _end_frame(self) -> None:
        content, self._frame = self._frame, None
        assert content is not None
        exchange, expected = self._in_flight[0], self._serial - len(self._in_flight) + 1
        try:
            response = frames.read_response(content, exchange.key, exchange.version)  # type: ignore[arg-type]
        except WireError as error:
            self._lost(f"its response cannot be read: {error}")
            return
        if response.header.correlation_id != expected:
            self._lost(f"it responded to request {response.header.correlation_id} instead of {expected}")
            return
        self._in_flight.popleft()
        self._finish(exchange, response.body)
        self._send_queued()

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self, exchange: _Exchange, response: object) -> None:
        if exchange.timer is not None:
            exchange.timer.cancel()
        exchange.done(response)

    def _expire(self, exchange: _Exchange) -> None:
        is_queued = exchange in self._queued
        if is_queued and (self._sock is None or self.is_ready):  # it never left
            self._queued.remove(exchange)
            exchange.done(PeerError(f"{self._name}: timed out while connecting"))
        elif is_queued or exchange in self._in_flight:
            self._silent()

    def _silent(self) -> None:
        self._told(PeerEvent.SILENT)
        self._end("it has not answered in time")

    def _lost(self, reason: str) -> None:
        self._told(PeerEvent.CLOSED)
        self._end(reason)

    def _end(self, reason: str) -> None:
        """Drop the connection; all that waits for it fails, and the next one is tried after a pause."""
        sock, self._sock = self._sock, None
        for timer in (self._opening, self._renewing):
            if timer is not None:
                timer.cancel()
        if sock is not None:
            self._loop.remove_reader(sock.fileno())
            self._loop.remove_writer(sock.fileno())
            if self._in_flight:
                # What is repeated must not be followed by the original: the kernel forgets what has not arrived yet.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            sock.close()
        self._served, self._is_ready, self._is_writing, self._frame = None, False, False, None
        self._size.clear()
        self._unsent.clear()
        failed = [*self._in_flight, *self._queued]
        self._in_flight.clear()
        self._queued.clear()
        self._failures += 1
        if self._retry is None and not self._is_closed:
            pause = min(BACKOFF_SECONDS * 2 ** (self._failures - 1), BACKOFF_MAX_SECONDS)
            pause *= 1 + _JITTER * (2 * self._randomness.fraction() - 1)
            self._retry = self._loop.call_later(pause, self._connect)
        for exchange in failed:
            self._finish(exchange, PeerError(f"{self._name}: {reason}"))
