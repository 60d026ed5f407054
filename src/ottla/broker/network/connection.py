"""A client's connection: frames in, answers out, in order, one request at a time.

Theory of operation. `readable` reads from the socket, cuts the bytes into frames and handles them until a request must
wait for its answer (`DelayedResponse`) or the peer does not read what it asked for. All records staged in a turn are
written together, and all answers of a turn leave with one send. While a request waits, later frames queue up and, past
a bound, the socket is no longer read, so that TCP slows the peer down. The same happens while more than
`OUTGOING_MAX_BYTES` of answers are unsent, and while the connection is muted because its client is over a quota
(`ottla.broker.network.quotas`).

On a listener with TLS the socket is a `TlsSocket`. With SASL, `SaslLogin` decides what is handled before the client has
logged in; whoever fails to is answered after a while and closed, and nothing more is read from him.

The connection owns its socket and talks to the loop only through `watch`, so tests can run it without one.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.network.closed_connections import ClosedConnections
from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.handshake_turns import HandshakeTurns
from ottla.broker.network.listener_security import PLAINTEXT, ListenerSecurity
from ottla.broker.network.logins import CERTIFICATE, Logins
from ottla.broker.network.memory_pool import MemoryPool
from ottla.broker.network.refused_batches import RefusedBatches
from ottla.broker.network.repeated_heartbeat import RepeatedHeartbeat
from ottla.broker.network.request import AfterWrite, Answer, Close, CloseCause, DelayedResponse, Peer, Request
from ottla.broker.network.sasl import SaslLogin, SaslState
from ottla.broker.network.send_queue import Part, SendQueue
from ottla.security.errors import LoginRefused
from ottla.security.sasl_server import Login
from ottla.security.tls_socket import ReceiveBuffer, TlsSocket
from ottla.wire import WireError, frames
from ottla.wire.access import ANONYMOUS
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import SIZE_BYTES

__all__ = ["Connection", "ConnectionLimits", "Loop", "Peer"]

log = logging.getLogger(__name__)

RECEIVE_BYTES: Final = 256 * 1024
_received: Final = ReceiveBuffer(RECEIVE_BYTES)
_size_in: Final = Struct(">i").unpack_from
OUTGOING_MAX_BYTES: Final = 4 * 1024 * 1024
"""Unsent answers beyond which no further request is worked on."""
_USER_CHARS_MAX: Final = 80
QUEUED_FRAMES_MAX: Final = 256
QUEUED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Frames behind a parked request beyond which the socket is not read."""
_NOT_YET: Final = (AfterWrite, DelayedResponse, type(None))
"""What a handler gives in place of an answer."""


class Loop(Protocol):
    """What is needed of an event loop."""

    def call_soon(self, callback: Callable[[], Any]) -> Any: ...  # noqa: ANN401
    def call_later(self, delay: float, callback: Callable[[], Any]) -> Any: ...  # noqa: ANN401
    def add_reader(self, fd: int, callback: Callable[[], Any]) -> None: ...
    def remove_reader(self, fd: int) -> bool: ...
    def add_writer(self, fd: int, callback: Callable[[], Any]) -> None: ...
    def remove_writer(self, fd: int) -> bool: ...


class ConnectionLimits(NamedTuple):
    frame_max_bytes: int = frames.FRAME_MAX_BYTES
    memory_pool: MemoryPool | None = None


class Owner(Protocol):
    """What a connection needs of its node: the clock, the end of a turn, and a call when it is closed."""

    closed_connections: ClosedConnections
    logins: Logins
    handshake_turns: HandshakeTurns

    def monotonic_ms(self) -> int: ...
    def write_staged(self) -> None: ...
    def connection_closed(self, connection: Connection) -> None: ...


class _Slot:
    """A response in the order of requests; `parts` is None until it is ready."""

    __slots__ = ("api", "later", "parts", "request")

    def __init__(self, api: Api, request: Request) -> None:
        self.api = api
        self.request = request
        self.later: DelayedResponse | None = None
        self.parts: list[Part] | None = None


class Connection:
    __slots__ = (
        "_charged_bytes",
        "_dispatch",
        "_frame_max_bytes",
        "_has_failed_login",
        "_is_closing",
        "_is_flush_queued",
        "_is_reading",
        "_is_starved",
        "_is_writing",
        "_limits",
        "_loop",
        "_muted_until_ms",
        "_owner",
        "_partial",
        "_queue",
        "_queued_bytes",
        "_security",
        "_send_queue",
        "_slots",
        "_sock",
        "_tls",
        "_unmuting",
        "client_id",
        "client_software",
        "is_token_login",
        "last_active_ms",
        "offered_apis",
        "opened_ms",
        "peer",
        "principal",
        "refused_batches",
        "repeated_heartbeat",
        "sasl",
    )

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        peer: Peer,
        owner: Owner,
        dispatch: Dispatch,
        *,
        offered_apis: Collection[int],
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008  # a constant
        security: ListenerSecurity = PLAINTEXT,
    ) -> None:
        self._loop = loop
        self._security = security
        self._tls = None if security.tls is None else TlsSocket(sock, security.tls)
        self._sock: socket.socket | TlsSocket = sock if self._tls is None else self._tls
        self._owner = owner
        self._dispatch = dispatch
        self._limits = limits
        self._send_queue = SendQueue()
        self._partial = bytearray()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._slots: deque[_Slot] = deque()
        self._is_reading = False
        self._is_writing = False
        self._is_closing = False
        self._is_flush_queued = False
        self._is_starved = False
        self._has_failed_login = False
        self._charged_bytes = 0
        self._unmuting: Any = None
        """The timer that ends a mute; None while there is none."""
        self._muted_until_ms = 0
        self.peer = peer
        self.offered_apis = offered_apis
        self.principal = ANONYMOUS
        self.is_token_login = False
        """Whether a delegation token was logged in with."""
        self.sasl = SaslLogin(security, self) if security.mechanisms else None
        self._frame_max_bytes = limits.frame_max_bytes
        if self.sasl is not None:
            self._frame_max_bytes = min(security.max_receive_bytes, limits.frame_max_bytes)
        self.client_id = ""
        """The client id of the last request."""
        self.client_software: tuple[str, str] | None = None
        self.refused_batches: RefusedBatches | None = None
        self.repeated_heartbeat: RepeatedHeartbeat | None = None
        self.last_active_ms = self.opened_ms = owner.monotonic_ms()
        self._watch_reading(True)

    def __repr__(self) -> str:
        return f"Connection({self.peer.host}:{self.peer.port} on {self.peer.listener})"

    @property
    def is_closed(self) -> bool:
        return self._sock.fileno() == -1

    @property
    def is_idle(self) -> bool:
        """Whether no response is owed to the peer."""
        return not self._slots and not self._queue and not self._has_unsent

    @property
    def is_known(self) -> bool:
        """Whether it is over with the TLS handshake and the first login."""
        if self._tls is not None and not self._tls.is_ready:
            return False
        return self.sasl is None or self.sasl.has_logged_in

    @property
    def _has_unsent(self) -> bool:
        return bool(self._send_queue) or (self._tls is not None and self._tls.has_unsent)

    @property
    def is_muted(self) -> bool:
        """Whether it is muted because of a quota."""
        return self._unmuting is not None

    @property
    def is_waiting(self) -> bool:
        """Whether it is for us to go on: a request is parked and the peer has taken what was sent, or nothing is read
        from it because of a quota or for want of memory."""
        return (bool(self._slots) and not self._send_queue) or self.is_muted or self._is_starved

    # --- input --------------------------------------------------------------------------------------------------------

    def readable(self) -> None:
        """The socket is readable."""
        if self._tls is not None and not self._tls.is_ready:
            self._owner.handshake_turns.run(self._shake_hands)
            return
        size = self._receive()
        if size:
            self._work_on(size)

    def _shake_hands(self) -> None:
        """Go on with the TLS handshake. Requests can come in one piece with its end: first it must be known whose."""
        assert self._tls is not None
        size = self._receive()
        if self._tls.is_ready and not self.is_closed and not self._security.mechanisms:
            self._identify(self._tls.peer_certificate)
        if size and not self.is_closed:
            self._work_on(size)

    def _identify(self, certificate: bytes | None) -> None:
        """Take the principal from the certificate of the client."""
        try:
            self.principal = self._security.principal_of(certificate)
        except (LoginRefused, ValueError) as error:
            self._owner.logins.failed(self.peer, CERTIFICATE, str(error))
            self.close(Close(f"its certificate: {error}", CloseCause.FAILED_LOGIN))
            return
        if self.principal != ANONYMOUS:
            self._owner.logins.succeeded(self.peer, CERTIFICATE, self.principal)

    def _receive(self) -> int:
        """How many bytes have come; 0 if there are none now, or if the connection has ended."""
        try:
            size = self._sock.recv_into(_received.memory)
        except (BlockingIOError, InterruptedError):
            if self._tls is not None:
                self._watch_writing(self._has_unsent)
            return 0
        except ssl.SSLError as error:
            reason = f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
            self._owner.logins.failed(self.peer, CERTIFICATE, reason)
            self.close(Close(reason, CloseCause.TLS))
            return 0
        except OSError as error:
            self.close(f"reading failed: {error}")
            return 0
        if not size:
            self.close("closed by the peer")
        return size

    def _work_on(self, size: int) -> None:
        """Work on the bytes that have come."""
        self.last_active_ms = self._owner.monotonic_ms()
        memory = _received.memory
        if self._is_one_request(memory, size):
            self._work_on_one(memory[SIZE_BYTES:size].tobytes())
            return
        try:
            self._take(memory[:size])
        except WireError as error:
            self.close(Close(str(error), CloseCause.FRAME_SIZE))
            return
        self.work()

    def _take(self, data: memoryview) -> None:
        """Cut bytes into frames; an incomplete one is kept for the next read."""
        if self._partial:
            data = self._complete(data)
        whole, used = frames.split(data, max_bytes=self._frame_max_bytes)
        if used < len(data):
            self._partial += data[used:]
        for frame in whole:
            self._enqueue(frame)
        if self._limits.memory_pool is not None:
            self._charge(self._limits.memory_pool)

    def _charge(self, memory_pool: MemoryPool) -> None:
        """Ask for memory for a large request that has begun; without it nothing more is read."""
        if self._charged_bytes or len(self._partial) < SIZE_BYTES:
            return
        size = int.from_bytes(self._partial[:SIZE_BYTES], "big")
        if size <= RECEIVE_BYTES:
            return
        if memory_pool.take(self, size, self._owner.monotonic_ms()):
            self._charged_bytes = size
        else:
            self._is_starved = True

    def feed(self) -> None:
        """There is memory again."""
        self._is_starved = False
        self.last_active_ms = self._owner.monotonic_ms()
        if self._limits.memory_pool is not None:
            self._charge(self._limits.memory_pool)
        self.flush()

    def _discharge(self) -> None:
        self._charged_bytes = 0
        if self._limits.memory_pool is not None:
            self._limits.memory_pool.give_back(self)

    def _complete(self, data: memoryview) -> memoryview:
        """Add bytes to the incomplete frame; returns those that belong to the next frames."""
        missing = SIZE_BYTES - len(self._partial)
        if missing > 0:
            self._partial += data[:missing]
            data = data[missing:]
            if len(self._partial) < SIZE_BYTES:
                return data
            frames.split(bytes(self._partial), max_bytes=self._frame_max_bytes)  # refuses a size that cannot be
        wanted = SIZE_BYTES + int.from_bytes(self._partial[:SIZE_BYTES], "big")
        missing = wanted - len(self._partial)
        self._partial += data[:missing]
        if len(self._partial) == wanted:
            frame = bytes(memoryview(self._partial)[SIZE_BYTES:])
            self._partial = bytearray()
            self._enqueue(frame)
        return data[missing:]

    def _enqueue(self, frame: bytes) -> None:
        if not frame:
            raise WireError("Size", None, "an empty frame")
        self._queued_bytes += len(frame)
        self._queue.append(frame)

    # --- work ---------------------------------------------------------------------------------------------------------

    def _is_one_request(self, memory: memoryview, size: int) -> bool:
        """Whether what has come is one whole request, before which nothing waits, and which nobody measures or
        watches."""
        if self._slots or self._queue or self._partial or self.sasl is not None or self._is_closing:
            return False
        dispatch = self._dispatch
        if self._unmuting is not None or self._send_queue.size_bytes or dispatch.meter or dispatch.tap:
            return False
        frame_size = size - SIZE_BYTES
        return 0 < frame_size <= self._frame_max_bytes and _size_in(memory)[0] == frame_size

    def _work_on_one(self, frame: bytes) -> None:
        """What `work` does, for most turns of most connections: one request, and its answer."""
        dispatch = self._dispatch
        try:
            request, api = dispatch.read(self, frame, self.last_active_ms)
            answer = dispatch.call(api, request)
            if isinstance(answer, _NOT_YET):
                self._write([(api, request, answer)])
            else:
                parts = dispatch.write(api, request, answer)
                self._owner.write_staged()
                if self._send_whole(parts):
                    return
        except Close as reason:
            self._end(reason)
            return
        self.flush()

    def _send_whole(self, parts: list[Part]) -> bool:
        """Send an answer past the queue, which is empty. False if something is left to do for `flush`."""
        if self._tls is None and len(parts) == 1 and type(parts[0]) is bytes:
            answer = parts[0]
            try:
                sent = self._sock.send(answer)
            except OSError:
                sent = 0  # `flush` tries once more, and tells what is wrong
            if sent == len(answer):
                return self._unmuting is None and not self._is_closing
            parts = [memoryview(answer)[sent:]]
        self._send_queue.add(parts)
        return False

    def _end(self, reason: Close) -> None:
        """A request ends the connection: what was asked before it is written, and answered as far as it can be."""
        self._owner.write_staged()
        self._send_answered()
        self.close(reason)

    def work(self) -> None:
        """Handle queued requests until one must wait, write what they staged, send their responses."""
        unwritten: list[tuple[Api, Request, Answer]] = []
        try:
            while True:
                self._call_handlers(unwritten)
                self._write(unwritten)
                if not self._queue or not self._can_work():
                    break  # else the write has brought the answer that the next request had to wait for
        except Close as reason:
            self._end(reason)
            return
        self.flush()

    def _send_answered(self) -> None:
        """Send the answers to requests that came before one that ends the connection, as far as the peer takes them."""
        with suppress(OSError, Close):
            self._send_queue.send(self._sock)

    def _call_handlers(self, unwritten: list[tuple[Api, Request, Answer]]) -> None:
        """Take requests from the queue until one must wait; `unwritten` gets those whose answers rest on a write."""
        while self._queue and self._can_work():
            frame = self._next_frame()
            if self.sasl is not None and self._log_in(self.sasl, frame):
                continue
            meter = self._dispatch.meter
            started_ns = 0 if meter is None else meter.now_ns()
            request, api = self._dispatch.read(self, frame, self._owner.monotonic_ms())
            if unwritten and api is not unwritten[0][0] and self._waits_for_write(frame, unwritten):
                break
            if meter is not None:
                meter.begin(request, len(frame), started_ns)
            if self._dispatch.tap is not None:
                self._dispatch.tap.received(request, api, len(frame))
            answer = self._dispatch.call(api, request)
            if not unwritten and not isinstance(answer, _NOT_YET):
                self._send_queue.add(self._dispatch.write(api, request, answer))  # the usual case, without a slot
                continue
            if unwritten or isinstance(answer, AfterWrite):
                unwritten.append((api, request, answer))
            else:
                self._settle(api, request, answer)
            if isinstance(answer, DelayedResponse) and not answer.is_complete:
                break  # nothing behind it is looked at before it is answered
            if meter is not None:
                break  # nor before it is known whether a pause must follow

    def _waits_for_write(self, frame: bytes, unwritten: list[tuple[Api, Request, Answer]]) -> bool:
        """Write before a request of another API: whoever produces and then reads on one connection finds what it wrote.

        True if a produce still waits to be acknowledged; the request then waits behind it.
        """
        self._write(unwritten)
        if not self._slots:
            return False
        self._queue.appendleft(frame)
        self._queued_bytes += len(frame)
        return True

    def _next_frame(self) -> bytes:
        frame = self._queue.popleft()
        self._queued_bytes -= len(frame)
        if len(frame) == self._charged_bytes:
            self._discharge()
        return frame

    def _write(self, unwritten: list[tuple[Api, Request, Answer]]) -> None:
        """Write what was staged, and finish the requests that wait for it."""
        self._owner.write_staged()
        for api, request, answer in unwritten:
            self._settle(api, request, answer)
        unwritten.clear()

    def _can_work(self) -> bool:
        if self._slots or self._is_closing or self._has_failed_login or self._unmuting is not None:
            return False
        return self._send_queue.size_bytes <= OUTGOING_MAX_BYTES

    def _settle(self, api: Api, request: Request, answer: Answer) -> None:
        if isinstance(answer, AfterWrite):
            answer = self._dispatch.finish(api, request, answer)
        slot = _Slot(api, request)
        self._slots.append(slot)
        if isinstance(answer, DelayedResponse) and answer.is_complete:
            self._fill(slot, answer.message)
        elif isinstance(answer, DelayedResponse):
            slot.later = answer
            if request.charge is not None:
                request.charge.park()
            answer.deliver_to(lambda message: self._deliver(slot, message))
        else:
            self._fill(slot, answer)

    def _fill(self, slot: _Slot, message: object) -> None:
        """A response is ready. Responses leave in the order of their requests."""
        slot.later = None
        if message is None:
            slot.parts = []
            self._dispatch.unanswered(slot.api, slot.request)
        else:
            slot.parts = self._dispatch.write(slot.api, slot.request, message)
        while self._slots and self._slots[0].parts is not None:
            self._send_queue.add(self._slots.popleft().parts or ())

    def _deliver(self, slot: _Slot, message: object) -> None:
        """The response of a delayed request is ready: send it and handle the requests queued behind it."""
        if self.is_closed:
            return
        try:
            self._fill(slot, message)
        except Close as reason:
            self.close(reason)
            return
        if self._slots:
            self._flush_soon()
        elif self._queue and self._can_work():
            self.work()
        else:
            self.flush()

    def _flush_soon(self) -> None:
        """Send at the end of the turn: a write that answers many requests brings their responses one by one."""
        if not self._is_flush_queued:
            self._is_flush_queued = True
            self._loop.call_soon(self._flush_queued)

    def _flush_queued(self) -> None:
        self._is_flush_queued = False
        self.flush()

    # --- output -------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send as much as the socket takes, then watch for what is needed next."""
        if self.is_closed:
            return
        if self._has_unsent:
            try:
                if self._tls is not None:
                    self._tls.flush()
                self._send_queue.send(self._sock)
            except Close as reason:
                self.close(reason)
                return
            except OSError as error:
                self.close(f"sending failed: {error}")
                return
        has_unsent = self._has_unsent
        self._watch_writing(has_unsent)
        has_room = self._queued_bytes <= QUEUED_BYTES_MAX and len(self._queue) <= QUEUED_FRAMES_MAX
        is_kept = self._is_starved or self._has_failed_login or self._unmuting is not None
        self._watch_reading(has_room and not is_kept)
        if self._is_closing and not has_unsent and not self._slots:
            self.close("drained")

    def writable(self) -> None:
        """The socket is writable again."""
        self.last_active_ms = self._owner.monotonic_ms()
        self.flush()
        if self._queue and not self.is_closed and self._can_work():
            self.work()

    def _watch_reading(self, wanted: bool) -> None:
        if wanted != self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._sock.fileno(), self.readable)
            else:
                self._loop.remove_reader(self._sock.fileno())

    def _watch_writing(self, wanted: bool) -> None:
        if wanted != self._is_writing:
            self._is_writing = wanted
            if wanted:
                self._loop.add_writer(self._sock.fileno(), self.writable)
            else:
                self._loop.remove_writer(self._sock.fileno())

    # --- login --------------------------------------------------------------------------------------------------------

    def monotonic_ms(self) -> int:
        return self._owner.monotonic_ms()

    def logged_in(self, login: Login, mechanism: str, *, is_renewal: bool) -> None:
        """Somebody has logged in, or renewed the session."""
        self.principal = f"User:{login.user}"
        self._owner.logins.succeeded(self.peer, mechanism, self.principal, is_renewal=is_renewal)
        self.is_token_login = login.is_token
        self._frame_max_bytes = self._limits.frame_max_bytes

    def login_failed(
        self, refused: LoginRefused, mechanism: str, later: DelayedResponse | None = None, answer: object = None
    ) -> None:
        """Answer a failed login after a while, and close the connection. Nothing more is read."""
        self._owner.logins.failed(self.peer, mechanism, refused.reason, refused.user)
        self._has_failed_login = True
        user = "" if refused.user is None else f" of {refused.user[:_USER_CHARS_MAX]!r}"
        reason = Close(
            f"a login{user} with {mechanism[:_USER_CHARS_MAX]} failed: {refused.reason}", CloseCause.FAILED_LOGIN
        )

        def end() -> None:
            if self.is_closed:
                return
            self._owner.closed_connections.add(self.peer, self.client_id, reason)
            if later is not None:
                later.complete(answer)
            self.drain()

        self._loop.call_later(self._security.failure_delay_ms / 1000, end)

    def _log_in(self, sasl: SaslLogin, frame: bytes) -> bool:
        """Take one frame of a login, of which nothing is measured or staged; False if the login is over."""
        if sasl.state is SaslState.LOGGED_IN:
            sasl.check_session(frame)
            return False
        if sasl.state is SaslState.SHAKEN_BARE:  # an old client, without Kafka's headers, and answered so
            token = sasl.bare_token(frame)
            if token is not None:
                self._send_queue.add([len(token).to_bytes(SIZE_BYTES, "big") + token])
            return True
        request, api = self._dispatch.read(self, frame, self._owner.monotonic_ms())
        if self._dispatch.tap is not None:
            self._dispatch.tap.received(request, api, len(frame))
        if sasl.takes(request):
            self._settle(api, request, self._dispatch.call(api, request))
        else:  # it must not come in the middle of a login: the connection ends
            self._has_failed_login = self._is_closing = True
            self._settle(api, request, api.refuse(request, ErrorCode.ILLEGAL_SASL_STATE, None))
        return True

    # --- quotas -------------------------------------------------------------------------------------------------------

    def mute(self, pause_ms: int) -> None:
        """Read no bytes and handle no requests for so long; responses of earlier requests are sent all the same."""
        until_ms = self._owner.monotonic_ms() + pause_ms
        self._muted_until_ms = max(self._muted_until_ms, until_ms)
        if self._unmuting is None and not self.is_closed:
            self._unmuting = self._loop.call_later(pause_ms / 1000, self.unmute)

    def unmute(self) -> None:
        """Read again, if the pause is over."""
        if self._unmuting is None:
            return
        left_ms = self._muted_until_ms - self._owner.monotonic_ms()
        if left_ms > 0:  # it was muted again meanwhile
            self._unmuting.cancel()
            self._unmuting = self._loop.call_later(left_ms / 1000, self.unmute)
            return
        self._end_mute()
        self.last_active_ms = self._owner.monotonic_ms()
        self.work()

    def _end_mute(self) -> None:
        if self._unmuting is not None:
            self._unmuting.cancel()
            self._unmuting = None

    # --- the end ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no further request; close when all requests are answered."""
        self._is_closing = True
        self._queue.clear()
        self._queued_bytes = 0
        self.flush()

    def close_idle(self) -> None:
        """Close a connection that has been idle for too long."""
        if self._send_queue:
            self.close(Close("it does not read its responses", CloseCause.UNREAD_ANSWERS))
        elif not self.is_known:
            self.close(Close("authentication timed out", CloseCause.LOGIN_NEEDED))
        elif self._partial:
            self.close(Close("its request was incomplete for too long", CloseCause.UNFINISHED_REQUEST))
        else:
            self.close(Close("idle", CloseCause.IDLE))

    def close(self, reason: str | Close) -> None:
        """Close it. If `reason` is a `Close` the broker decided it, and the client is named in the log."""
        if self.is_closed:
            return
        log.debug("%s: %s", self, reason)
        if isinstance(reason, Close):
            self._owner.closed_connections.add(self.peer, self.client_id, reason)
        self._end_mute()
        self._watch_reading(False)
        self._watch_writing(False)
        self._send_queue.clear()
        self._queue.clear()
        for slot in self._slots:
            if slot.later is not None:
                slot.later.cancel()
        self._slots.clear()
        self._discharge()
        self._sock.close()
        self._owner.connection_closed(self)
