"""Traffic: what clients ask of a node and what they are answered, for those who watch it on the inspect listener.

Theory of operation. While nobody watches, `Dispatch.tap` is None and nothing here is loaded. The first viewer makes
`Traffic` the tap, the last one who leaves takes it away. `Traffic` hands each request, and later its response, to the
viewers whose filters admit it. A viewer that wants errors alone gets the request together with its response.

A viewer has a ring. Handlers never wait for it: a full ring drops its oldest frames and counts them. Frames become
text only when the viewer's connection takes them (`Viewer.take`), and for a bounded time each time, since that is the
costly part. Above `FRAMES_PER_SECOND_MAX` only one in so many exchanges is taken; the number follows the last second.

A ring holds decoded messages, so it has a bound in bytes, too. Records are not kept beyond a small size; what a frame
shows of them is the headers of their batches, never a key, a value or a header of a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.network.request import Encoded
from ottla.explain.record_fields import has_records, records_in, without_records
from ottla.wire.frames import SIZE_BYTES

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock
    from ottla.broker.network.dispatch import Api, Dispatch
    from ottla.broker.network.request import Peer, Request
    from ottla.explain.filters import Filters

__all__ = ["Frame", "Traffic", "Viewer", "Wanted"]

VIEWERS_MAX: Final = 4
RING_FRAMES_MAX: Final = 2_000
RING_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of the messages in one ring."""
FRAMES_PER_SECOND_MAX: Final = 200
RECORD_BYTES_MAX: Final = 64 * 1024
"""Records of a message that are kept until their batches are shown; more are left out at once."""
PENDING_MAX: Final = 10_000
"""Requests whose responses are waited for."""
TAKE_NS_MAX: Final = 5_000_000
"""How long one `take` makes text of frames: a tenth of the time between two of them."""
STATUS_MS: Final = 1_000


class Frame(NamedTuple):
    """A request or a response."""

    at_us: int
    name: str
    """`FetchRequest`."""
    version: int
    correlation_id: int
    client_id: str
    principal: str
    peer: Peer
    body: Any
    size_bytes: int
    record_bytes: int
    """Of these bytes, those of records."""
    took_us: int | None
    """Of a response: the time since its request."""

    @property
    def kept_bytes(self) -> int:
        """How much of the frame is still in memory, about."""
        return self.size_bytes if self.record_bytes <= RECORD_BYTES_MAX else self.size_bytes - self.record_bytes


class Wanted(NamedTuple):
    """What a viewer wants to see."""

    filters: Filters
    has_errors_only: bool = False


class _Pending(NamedTuple):
    """A request whose response somebody wants to see."""

    at_us: int
    size_bytes: int
    viewers: list[Viewer]


class Traffic:
    """The tap of a node. `has_error` tells whether a response has an error in it."""

    def __init__(self, dispatch: Dispatch, clock: Clock, has_error: Callable[[Any, str, int], bool]) -> None:
        self._dispatch = dispatch
        self._clock = clock
        self._has_error = has_error
        self._viewers: list[Viewer] = []
        self._pending: dict[Request, _Pending] = {}
        self._epoch_us = 0

    @property
    def is_full(self) -> bool:
        return len(self._viewers) >= VIEWERS_MAX

    def watch(self, wanted: Wanted, text_of: Callable[[Frame], bytes], status_of: StatusText) -> Viewer:
        if not self._viewers:
            self._epoch_us = self._clock.wall_ms() * 1000 - self._clock.precise_ns() // 1000
            self._dispatch.begin_tap(self)
        viewer = Viewer(self._clock, wanted, text_of, status_of, self._leave)
        self._viewers.append(viewer)
        return viewer

    def _leave(self, viewer: Viewer) -> None:
        self._viewers.remove(viewer)
        if not self._viewers:
            self._dispatch.end_tap()
            self._pending.clear()

    def _now_us(self) -> int:
        return self._epoch_us + self._clock.precise_ns() // 1000

    def received(self, request: Request, api: Api, size_bytes: int) -> None:
        """A request came; `size_bytes` does not count the size before it."""
        takers = [viewer for viewer in self._viewers if viewer.wants_request(api.name, request.client_id)]
        if not takers:
            return
        at_us = self._now_us()
        self._pending[request] = _Pending(at_us, size_bytes, takers)
        if len(self._pending) > PENDING_MAX:
            del self._pending[next(iter(self._pending))]
        at_once = [viewer for viewer in takers if not viewer.has_errors_only]
        if at_once:
            frame = _frame(request, f"{api.name}Request", request.version, request.body, size_bytes, at_us)
            for viewer in at_once:
                viewer.add(frame)

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None:  # noqa: ANN401
        """A response is ready; None if none is due. Only those are shown whose requests were."""
        pending = self._pending.pop(request, None)
        if pending is None or answer is None:
            return
        at_us = self._now_us()
        # An ApiVersions request that is too new is answered in version 0.
        version = request.version if request.body is not None else 0
        name, took_us = f"{api.name}Response", at_us - pending.at_us
        frame = _frame(request, name, version, answer, size_bytes, at_us, took_us)
        is_error: bool | None = None
        for viewer in pending.viewers:
            if not viewer.has_errors_only:
                viewer.add(frame)
                continue
            if is_error is None:
                is_error = not isinstance(frame.body, Encoded) and self._has_error(frame.body, name, version)
            if is_error and viewer.takes_exchange():
                asked = (request.version, request.body, pending.size_bytes, pending.at_us)
                viewer.add(_frame(request, f"{api.name}Request", *asked))
                viewer.add(frame)


StatusText = Callable[["Viewer"], bytes | None]
"""What is said about the stream itself; None if the viewer may see no more."""


class Viewer:
    """One who watches: the source of a stream. Rates are those of the last full second."""

    def __init__(
        self,
        clock: Clock,
        wanted: Wanted,
        text_of: Callable[[Frame], bytes],
        status_of: StatusText,
        leave: Callable[[Viewer], None],
    ) -> None:
        self._clock = clock
        self._filters = wanted.filters
        self.has_errors_only = wanted.has_errors_only
        self._text_of = text_of
        self._status_of = status_of
        self._leave = leave
        self._ring: deque[Frame] = deque()
        self._ring_bytes = 0
        self._told_ms: int | None = None
        self._second_ms = clock.monotonic_ms()
        self._seen = self._shown = 0
        self._draw = 1
        self.one_in = 1
        """One in so many exchanges is shown."""
        self.seen_per_second = 0
        self.shown_per_second = 0
        self.dropped = 0
        """Frames that were taken, and then lost because the viewer did not take them in time."""

    # --- what comes in ------------------------------------------------------------------------------------------------

    def wants_request(self, api: str, client_id: str) -> bool:
        """Whether this viewer takes a request, or waits for what becomes of it."""
        if not self._filters.admits_client(api, client_id):
            return False
        return self.has_errors_only or self.takes_exchange()

    def takes_exchange(self) -> bool:
        """Whether the next exchange that the filters admit is among those that are shown."""
        self._roll()
        self._seen += 2  # a request and its response
        # A step that does not follow the order in which one client asks different things.
        self._draw = (self._draw * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        return self._shown < FRAMES_PER_SECOND_MAX and (self._draw >> 8) % self.one_in == 0

    def _roll(self) -> None:
        """Begin another second, if this one is over."""
        elapsed_ms = self._clock.monotonic_ms() - self._second_ms
        if elapsed_ms < STATUS_MS:
            return
        self.seen_per_second = round(self._seen * 1000 / elapsed_ms)
        self.shown_per_second = round(self._shown * 1000 / elapsed_ms)
        self.one_in = max(1, -(-self.seen_per_second // FRAMES_PER_SECOND_MAX))
        self._second_ms += elapsed_ms
        self._seen = self._shown = 0

    def add(self, frame: Frame) -> None:
        self._shown += 1
        self._ring.append(frame)
        self._ring_bytes += frame.kept_bytes
        while len(self._ring) > RING_FRAMES_MAX or self._ring_bytes > RING_BYTES_MAX:
            self._pop()
            self.dropped += 1

    def _pop(self) -> Frame:
        frame = self._ring.popleft()
        self._ring_bytes -= frame.kept_bytes
        return frame

    # --- what goes out ------------------------------------------------------------------------------------------------

    def take(self) -> bytes | None:
        """The text of frames, as many as there is time for, and once a second the status."""
        lines: list[bytes] = []
        now_ms = self._clock.monotonic_ms()
        if self._told_ms is None or now_ms - self._told_ms >= STATUS_MS:
            self._roll()
            status = self._status_of(self)
            if status is None:
                return None
            lines.append(status)
            self._told_ms = now_ms
        until_ns = self._clock.precise_ns() + TAKE_NS_MAX
        while self._ring and self._clock.precise_ns() < until_ns:
            lines.append(self._text_of(self._pop()))
        return b"".join(lines)

    def close(self) -> None:
        self._leave(self)


def _frame(
    request: Request,
    name: str,
    version: int,
    body: Any,  # noqa: ANN401
    size_bytes: int,
    at_us: int,
    took_us: int | None = None,
) -> Frame:
    record_bytes = 0
    if body is not None and not isinstance(body, Encoded) and has_records(name, version):
        held: Sequence[Any] = list(records_in(body, name, version))
        record_bytes = sum(map(len, held))
        if record_bytes > RECORD_BYTES_MAX or not all(isinstance(each, bytes | memoryview) for each in held):
            body = without_records(body, name, version)
    return Frame(
        at_us=at_us,
        name=name,
        version=version,
        correlation_id=request.correlation_id,
        client_id=request.client_id,
        principal=request.principal,
        peer=request.connection.peer,
        body=body,
        size_bytes=size_bytes + SIZE_BYTES,
        record_bytes=record_bytes,
        took_us=took_us,
    )
