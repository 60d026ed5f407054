"""One connection to a broker: requests go out, answers come back in the same order.

Theory of operation. Requests are pipelined: a request is written as soon as there is room, and its place in the queue
is what its answer is matched with. Brokers answer in order; the correlation id must agree, else the stream is no longer
understood and the connection is closed. Bounds: at most `max_in_flight` requests wait for answers, nothing is written
while the socket's buffer is full, and no answer may be larger than `max_response_bytes`.

No task runs here. Bytes arrive through the loop's callbacks, and whoever waits for an answer also watches the clock. A
request that gets no answer within `request_timeout_ms` ends the connection, for whatever follows it would wait behind
it. A caller that goes away, or cannot wait for so long, leaves its place in the queue; the answer is read and dropped.

Throttling (KIP-219): an answer with a throttle time asks us to keep quiet for so long; the next request waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from math import inf
from typing import Any, Final, NamedTuple, cast

from ottla.client.address import Peer
from ottla.client.clock import monotonic_s
from ottla.client.errors import ClientError, ClosedError, ConnectionLostError, ProtocolError, RequestTimeoutError
from ottla.client.exchange import SIZE, Requests, SentRequest, bad_size, loss, patience_ms, read_answer
from ottla.client.settings import ClientSettings
from ottla.client.versions import ApiRanges, api_of

__all__ = ["Connection", "patience_ms"]

_log: Final = logging.getLogger("ottla.client.requests")
CLOSE_TIMEOUT_S: Final = 5.0
SECOND_MS: Final = 1000


class _Waiting(NamedTuple):
    """A request that has been written, and where its answer goes."""

    asked: SentRequest
    sent_at_s: float
    due_at_s: float
    answer: asyncio.Future[Any]


class Connection(asyncio.Protocol):
    """What `handshake.open_connection` gives. `versions` is what the broker offers."""

    def __init__(self, peer: Peer, settings: ClientSettings) -> None:
        self.peer = peer
        self.versions: ApiRanges = {}
        self.session_ends_at_s: float | None = None
        """When the broker will want us to log in anew; the pool then opens another connection."""
        self.last_used_at_s = monotonic_s()
        self._requests = Requests(peer, settings.client_id)
        self._request_timeout_ms = settings.request_timeout_ms
        self._max_response_bytes = settings.max_response_bytes
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Semaphore(settings.max_in_flight)
        self._writable = asyncio.Event()
        self._waiting: deque[_Waiting] = deque()
        self._received = bytearray()
        self._answered = 0
        self._quiet_until_s = 0.0
        self._failure: ClientError | None = None
        self._ended = asyncio.get_running_loop().create_future()

    # --- what the client uses -----------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        return self._failure is None and self._transport is not None

    async def request(self, message: object, version: int, *, timeout_ms: float | None = None) -> object:
        """Send a request and wait for its answer: for `request_timeout_ms`, or less if the caller says so."""
        limit_ms = min(self._limit_ms(message), inf if timeout_ms is None else timeout_ms)
        try:
            async with asyncio.timeout(limit_ms / SECOND_MS):
                return await (await self.submit(message, version))
        except TimeoutError:
            error = RequestTimeoutError(self.peer, f"{api_of(type(message))} v{version}", round(limit_ms))
            if self._waiting and self._waiting[0].due_at_s <= monotonic_s():
                self.abort(error)
            raise error from None

    def _limit_ms(self, message: object) -> int:
        return self._request_timeout_ms + patience_ms(message)

    async def submit(self, message: object, version: int) -> asyncio.Future[Any]:
        """Send a request as soon as there is room; its answer arrives in the future."""
        await self._room.acquire()
        try:
            await self._may_write()
            asked = self._write(message, version)
        except BaseException:
            self._room.release()
            raise
        now_s = monotonic_s()
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(asked, now_s, now_s + self._limit_ms(message) / SECOND_MS, answer))
        return answer

    async def post(self, message: object, version: int) -> None:
        """Send a request that gets no answer: Produce with acks=0. Returns when the socket has taken it."""
        await self._may_write()
        self._write(message, version)
        await self._writable.wait()
        self._check_open()

    def abort(self, error: ClientError) -> None:
        """End the connection at once; what waits for an answer gets the error."""
        self._fail(error)
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """End the connection; what was written still leaves."""
        self._fail(ClosedError(f"the connection to {self.peer} was closed"))
        if self._transport is None:
            return
        self._transport.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.shield(self._ended)
        except TimeoutError:  # a peer that does not end its TLS session, or does not read
            self._transport.abort()
            await self._ended

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _may_write(self) -> None:
        quiet_s = self._quiet_until_s - monotonic_s()
        if quiet_s > 0:
            await asyncio.sleep(quiet_s)
        await self._writable.wait()
        self._check_open()

    def _write(self, message: object, version: int) -> SentRequest:
        assert self._transport is not None, "written before the connection was made"
        asked, frame = self._requests.write(message, version)
        self.last_used_at_s = monotonic_s()
        self._transport.write(frame)
        return asked

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- what the loop calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            self._take_frames()
        except ProtocolError as error:
            self.abort(error)

    def eof_received(self) -> None:
        return None  # close our side, too; connection_lost follows

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(ConnectionLostError(self.peer, loss(error, [each.asked for each in self._waiting], self._answered)))
        if not self._ended.done():
            self._ended.set_result(None)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        position = 0
        while self._failure is None and len(self._received) - position >= SIZE.size:
            (size,) = SIZE.unpack_from(self._received, position)
            if not SIZE.size <= size <= self._max_response_bytes:
                raise bad_size(self.peer, size, self._max_response_bytes)
            start = position + SIZE.size
            if len(self._received) < start + size:
                break
            with memoryview(self._received) as view:
                frame = bytes(view[start : start + size])
            position = start + size
            self._take(frame)
        del self._received[:position]

    def _take(self, frame: bytes) -> None:
        if not self._waiting:
            raise ProtocolError(self.peer, f"{len(frame)} bytes that match no request")
        waiting = self._waiting.popleft()
        self._room.release()
        try:
            body = read_answer(self.peer, waiting.asked, frame)
        except ProtocolError as error:
            _reject(waiting.answer, error)
            if error.is_out_of_step:
                raise
            return
        self._answered += 1
        self.last_used_at_s = monotonic_s()
        if _log.isEnabledFor(logging.DEBUG):
            took_ms = (self.last_used_at_s - waiting.sent_at_s) * SECOND_MS
            _log.debug(
                "%s v%d from %s: %d B in %.1f ms",
                waiting.asked.api,
                waiting.asked.version,
                self.peer,
                len(frame),
                took_ms,
            )
        throttle_ms = getattr(body, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._quiet_until_s = monotonic_s() + throttle_ms / SECOND_MS
        if not waiting.answer.done():
            waiting.answer.set_result(body)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _fail(self, error: ClientError) -> None:
        """The first failure is the one that everybody is told."""
        if self._failure is not None:
            return
        self._failure = error
        self._writable.set()
        while self._waiting:
            _reject(self._waiting.popleft().answer, error)
            self._room.release()


def _reject(answer: asyncio.Future[Any], error: ClientError) -> None:
    if answer.done():
        return
    answer.set_exception(error)
    # Who waits for the answer is told. If nobody does any more, asyncio need not complain about it.
    with suppress(asyncio.CancelledError):
        answer.exception()
