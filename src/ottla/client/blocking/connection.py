"""One connection of a blocking client: requests may be sent ahead, answers are received in the same order."""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections import deque
from typing import Final, NamedTuple

from ottla.client.address import Peer
from ottla.client.backoff import Deadline
from ottla.client.errors import ClientError, ClosedError, ConnectError, ConnectionLostError, RequestTimeoutError
from ottla.client.exchange import SIZE, Requests, SentRequest, bad_size, loss, patience_ms, read_answer
from ottla.client.handshake import NEGOTIATION, reason
from ottla.client.negotiation import SECOND_MS, Negotiation, negotiate
from ottla.client.settings import ClientSettings
from ottla.client.versions import ApiRanges

__all__ = ["BlockingConnection", "open_blocking"]

CLOSED_BY_BROKER: Final = "the broker closed it"


class _Waiting(NamedTuple):
    asked: SentRequest
    deadline: Deadline
    limit_ms: int


def open_blocking(peer: Peer, settings: ClientSettings) -> BlockingConnection:
    """A connection that is ready for requests, or ConnectError, AuthenticationError and the like."""
    connection = BlockingConnection(peer, settings, _connect(peer, settings))
    try:
        _follow(connection, negotiate(peer, settings.sasl), Deadline(settings.connect_timeout_ms))
    except BaseException:
        connection.shut()
        raise
    return connection


def _connect(peer: Peer, settings: ClientSettings) -> socket.socket:
    host, port = peer.address
    raw: socket.socket | None = None
    try:
        raw = socket.create_connection((host, port), timeout=settings.connect_timeout_ms / SECOND_MS)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return raw if settings.tls is None else settings.tls.wrap_socket(raw, server_hostname=host)
    except TimeoutError:
        why = f"no connection within {settings.connect_timeout_ms} ms"
    except OSError as error:
        why = reason(error, has_tls=settings.tls is not None)
    if raw is not None:
        raw.close()
    raise ConnectError(peer, why)


def _follow(connection: BlockingConnection, negotiation: Negotiation, deadline: Deadline) -> None:
    try:
        said = next(negotiation)
        while True:
            connection.send(*said)
            try:
                answer = connection.receive(deadline)
            except RequestTimeoutError as error:
                raise RequestTimeoutError(connection.peer, NEGOTIATION, error.waited_ms) from None
            said = negotiation.send(answer)
    except StopIteration as end:
        connection.versions, session_s = end.value
        if session_s is not None:
            connection.session_ends_at_s = time.monotonic() + session_s


class BlockingConnection:
    """What `open_blocking` gives. `versions` is what the broker offers."""

    def __init__(self, peer: Peer, settings: ClientSettings, sock: socket.socket) -> None:
        self.peer = peer
        self.versions: ApiRanges = {}
        self.session_ends_at_s: float | None = None
        self.last_used_at_s = time.monotonic()
        self._requests = Requests(peer, settings.client_id)
        self._request_timeout_ms = settings.request_timeout_ms
        self._max_response_bytes = settings.max_response_bytes
        self._socket = sock
        self._waiting: deque[_Waiting] = deque()
        self._answered = 0
        self._quiet_until_s = 0.0
        self._failure: ClientError | None = None

    # --- sending ahead ------------------------------------------------------------------------------------------------

    def send(self, message: object, version: int) -> None:
        """Send a request; its answer has to be received after those of the requests before it."""
        waiting = self._write(message, version)
        self._waiting.append(waiting)

    def receive(self, deadline: Deadline | None = None) -> object:
        """The answer to the oldest request that still waits for its own. Its time-out begins now: it was sent ahead."""
        waiting = self._waiting[0]
        frame = self._frame(deadline or Deadline(waiting.limit_ms), waiting)
        self._waiting.popleft()
        self._answered += 1
        self.last_used_at_s = time.monotonic()
        try:
            body = read_answer(self.peer, waiting.asked, frame)
        except ClientError as error:
            self._fail(error)
            raise
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._quiet_until_s = self.last_used_at_s + throttle_ms / SECOND_MS
        return body

    # --- what the pool and the client use -----------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether it can be used: the broker may have closed it while nobody looked."""
        if self._failure is None and not self._waiting and _is_readable(self._socket):
            self._fail(ConnectionLostError(self.peer, CLOSED_BY_BROKER))
        return self._failure is None

    async def request(self, message: object, version: int, *, timeout_ms: float | None = None) -> object:
        """Send a request and wait for its answer. Nobody else may be waiting for one."""
        assert not self._waiting, "a request between others that were sent ahead"
        self.send(message, version)
        own = self._waiting[0].deadline
        if timeout_ms is not None and timeout_ms < own.left_ms:
            return self.receive(Deadline(timeout_ms))
        return self.receive(own)

    async def post(self, message: object, version: int) -> None:
        """Send a request that gets no answer: Produce with acks=0."""
        self._write(message, version)

    async def close(self) -> None:
        self.shut()

    def shut(self) -> None:
        """End the connection at once."""
        self._fail(ClosedError(f"the connection to {self.peer} was closed"))

    # --- bytes --------------------------------------------------------------------------------------------------------

    def _write(self, message: object, version: int) -> _Waiting:
        if self._failure is not None:
            raise self._failure
        quiet_s = self._quiet_until_s - time.monotonic()
        if quiet_s > 0:
            time.sleep(quiet_s)
        asked, frame = self._requests.write(message, version)
        limit_ms = self._request_timeout_ms + patience_ms(message)
        waiting = _Waiting(asked, Deadline(limit_ms), limit_ms)
        self.last_used_at_s = time.monotonic()
        try:
            self._socket.settimeout(limit_ms / SECOND_MS)
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error, waiting) from None
        except BaseException:  # interrupted in the middle of a request
            self.shut()
            raise
        return waiting

    def _frame(self, deadline: Deadline, waiting: _Waiting) -> bytearray:
        if self._failure is not None:
            raise self._failure
        try:
            (size,) = SIZE.unpack(self._exactly(SIZE.size, deadline))
            if SIZE.size <= size <= self._max_response_bytes:
                return self._exactly(size, deadline)
        except OSError as error:
            raise self._lost(error, waiting) from None
        except BaseException:  # interrupted in the middle of an answer
            self.shut()
            raise
        raise self._failed(bad_size(self.peer, size, self._max_response_bytes))

    def _exactly(self, size: int, deadline: Deadline) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        position = 0
        while position < size:
            left_s = deadline.left_s
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            count = self._socket.recv_into(view[position:])
            if count == 0:
                raise ConnectionResetError(CLOSED_BY_BROKER)
            position += count
        return data

    # --- the end ------------------------------------------------------------------------------------------------------

    def _lost(self, error: OSError, waiting: _Waiting) -> ClientError:
        asked = waiting.asked
        if isinstance(error, TimeoutError):
            waited_ms = round(waiting.limit_ms - waiting.deadline.left_ms)
            return self._failed(RequestTimeoutError(self.peer, f"{asked.api} v{asked.version}", waited_ms))
        others = [each.asked for each in self._waiting] or [asked]
        return self._failed(ConnectionLostError(self.peer, loss(error, others, self._answered)))

    def _failed(self, error: ClientError) -> ClientError:
        self._fail(error)
        return error

    def _fail(self, error: ClientError) -> None:
        """The first failure is the one that everybody is told."""
        if self._failure is None:
            self._failure = error
            self._waiting.clear()
            self._socket.close()


def _is_readable(sock: socket.socket) -> bool:
    """Whether something has come that nobody asked for, which can only be the end."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))
