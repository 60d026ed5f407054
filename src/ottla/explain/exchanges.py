"""Exchanges: pairs the requests and responses in the bytes of both directions of a connection.

A response has neither its API nor its version, only the correlation id of its request, which has both. So requests are
kept until their response comes.

    connection = Connection()                                    # or Connection(in_sync=False) in mid-stream
    for event in connection.receive(Side.CLIENT, data, at_ns):   # and Side.BROKER
        ...                                                      # an Exchange, or Loss where bytes are missing
    for event in connection.close(at_ns):                        # requests that were never answered

A proxy that changes responses on their way works one level below, frame by frame:

    reader = FrameReader()                                       # one per direction
    reader.receive(data, at_ns)
    while (frame := reader.next_event()) is not None:
        for exchange in conversation.response(frame):            # or conversation.request(frame)
            ...                                                  # ottla.explain.rewrite changes addresses

How an exchange ends:

==========  ===================================================================================================
outcome     meaning
==========  ===================================================================================================
answered    request and response
one-way     a Produce with acks=0, which is never answered
unanswered  the connection ended, or too many other requests came, before a response did
unpaired    a response whose request was not seen (the capture began later, or lost it): its name is ""
==========  ===================================================================================================

Bare SASL tokens: after SaslHandshake v0 the client and the broker exchange tokens that have a size but no header. They
become messages of the name SASL_TOKEN without a body; the phase ends with the first frame that is a whole request.

Nothing here does input or output or reads a clock. Bounds: at most `pending_max` requests wait; if they hold more than
`pending_bytes_max` bytes, the oldest keep only their headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from struct import Struct
from typing import Any, Literal

from ottla import wire
from ottla.explain import resync
from ottla.explain.stream import HOLD_BYTES, Frame, FrameReader, Skipped
from ottla.wire import frames
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError

__all__ = ["SASL_TOKEN", "Connection", "Conversation", "Event", "Exchange", "Loss", "Message", "Outcome", "Side"]

PENDING_MAX = 1024
PENDING_BYTES_MAX = 16 * 1024 * 1024
SASL_TOKEN = "SaslToken"
_CORRELATION = Struct(">i")

Outcome = Literal["answered", "one-way", "unanswered", "unpaired"]


class Side(Enum):
    """The sender."""

    CLIENT = "client"
    BROKER = "broker"

    @property
    def other(self) -> Side:
        return Side.BROKER if self is Side.CLIENT else Side.CLIENT


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a response. `body` is None where it could not be read; `error` then says why."""

    name: str
    """The codec's name: "FetchRequest". SASL_TOKEN for a bare token, "" for a response to an unseen request."""
    version: int
    """The version of the request; 0 if the broker fell back to it in an ApiVersions response; -1 if unknown."""
    correlation_id: int
    client_id: str | None
    """A response has the client id of its request."""
    body: Any | None
    body_start: int
    """Where the body begins in `frame.data`."""
    frame: Frame
    error: WireError | None = None

    @property
    def api(self) -> str:
        """The name without Request or Response."""
        return self.name.removesuffix("Request").removesuffix("Response")

    @property
    def size_bytes(self) -> int:
        return self.frame.size_bytes

    @property
    def at_ns(self) -> int:
        return self.frame.at_ns


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response; one of the two may be missing."""

    request: Message | None
    response: Message | None
    outcome: Outcome

    @property
    def latency_ns(self) -> int | None:
        """From the request's last byte to the response's last byte."""
        if self.request is None or self.response is None:
            return None
        return self.response.at_ns - self.request.at_ns

    @property
    def first(self) -> Message:
        """The request, or the response where there is no request."""
        message = self.request or self.response
        assert message is not None
        return message


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes of one direction that belong to no frame: lost in the capture, or skipped to find the next frame."""

    sender: Side
    lost_bytes: int
    passed_bytes: int
    at_ns: int


Event = Exchange | Loss

_HEADER_BYTES_MIN = {Side.CLIENT: resync.REQUEST_BYTES_MIN, Side.BROKER: _CORRELATION.size}


class Conversation:
    """Frames of one connection in, exchanges out."""

    def __init__(self, *, pending_max: int = PENDING_MAX, pending_bytes_max: int = PENDING_BYTES_MAX) -> None:
        self._pending: list[Message] = []  # in the order in which they were sent and are answered
        self._pending_max = pending_max
        self._pending_bytes_max = pending_bytes_max
        self._is_token_phase = False

    @property
    def pending(self) -> tuple[Message, ...]:
        """The requests that wait for their response, oldest first."""
        return tuple(self._pending)

    @property
    def is_token_phase(self) -> bool:
        """Whether frames are bare SASL tokens, not requests and responses."""
        return self._is_token_phase

    def request(self, frame: Frame) -> list[Exchange]:
        """Takes a frame from the client; returns the exchanges that it ends."""
        if self._is_token_phase:
            if not resync.is_whole_request(frame.data):
                return self._remember(Message(SASL_TOKEN, -1, -1, None, None, 0, frame))
            self._is_token_phase = False
        message = read_request(frame)
        if message.name == "ProduceRequest" and message.body is not None and message.body.acks == 0:
            return [Exchange(message, None, "one-way")]
        return self._remember(message)

    def response(self, frame: Frame) -> list[Exchange]:
        """Takes a frame from the broker; returns its exchange."""
        if self._pending and self._pending[0].name == SASL_TOKEN:
            request = self._pending.pop(0)
            return [Exchange(request, Message(SASL_TOKEN, -1, -1, None, None, 0, frame), "answered")]
        if len(frame.data) < _CORRELATION.size:
            reason = "the frame is too short for a correlation id"
            error = WireError("ResponseHeader.CorrelationId", len(frame.data), reason)
            return [Exchange(None, Message("", -1, -1, None, None, 0, frame, error), "unpaired")]
        (correlation_id,) = _CORRELATION.unpack_from(frame.data)
        waiting = self._take(correlation_id)
        if waiting is None:
            return [Exchange(None, Message("", -1, correlation_id, None, None, 4, frame), "unpaired")]
        response = read_response(frame, waiting)
        if _begins_token_phase(response):
            self._is_token_phase = True
        return [Exchange(waiting, response, "answered")]

    def close(self) -> list[Exchange]:
        """The connection has ended: the requests that were not answered."""
        unanswered = [Exchange(message, None, "unanswered") for message in self._pending]
        self._pending.clear()
        return unanswered

    def waits_for(self, correlation_id: int) -> Message | None:
        """The oldest waiting request with this correlation id."""
        for message in self._pending:
            if message.correlation_id == correlation_id and message.name != SASL_TOKEN:
                return message
        return None

    def _take(self, correlation_id: int) -> Message | None:
        message = self.waits_for(correlation_id)
        if message is not None:
            self._pending.remove(message)
        return message

    def _remember(self, message: Message) -> list[Exchange]:
        self._pending.append(message)
        self._shed_weight()
        if len(self._pending) <= self._pending_max:
            return []
        return [Exchange(self._pending.pop(0), None, "unanswered")]

    def _shed_weight(self) -> None:
        weight = sum(len(message.frame.data) for message in self._pending)
        for index, message in enumerate(self._pending):
            if weight <= self._pending_bytes_max:
                return
            weight -= len(message.frame.data)
            self._pending[index] = _header_only(message)


def read_request(frame: Frame) -> Message:
    """The request in a frame. If it cannot be read, the message has an error; no exception is raised."""
    try:
        header, at = frames.read_request_header(frame.data)
    except WireError as broken:
        key, version, correlation_id = resync.first_fields(frame.data)
        name = frames.api_names().get(key, f"Api{key}") + "Request"
        return Message(name, version, correlation_id, None, None, len(frame.data), frame, broken)
    name = frames.api_names()[header.request_api_key] + "Request"
    body, error = _read_body(name, header.request_api_version, frame, at)
    return Message(name, header.request_api_version, header.correlation_id, header.client_id, body, at, frame, error)


def read_response(frame: Frame, request: Message) -> Message:
    """The response in a frame that answers `request`."""
    name = request.name.removesuffix("Request") + "Response"
    version = request.version
    at, body, error = _read_versioned(name, version, frame)
    if name == "ApiVersionsResponse" and error is not None and version != 0:
        # A broker that does not know the client's version answers in version 0, which every client can read.
        fallen_back = _read_versioned(name, 0, frame)
        if fallen_back[2] is None:
            at, body, error = fallen_back
            version = 0
    (correlation_id,) = _CORRELATION.unpack_from(frame.data)
    return Message(name, version, correlation_id, request.client_id, body, at, frame, error)


def _read_versioned(name: str, version: int, frame: Frame) -> tuple[int, Any | None, WireError | None]:
    try:
        at = response_body_start(frame.data, name, version)
    except WireError as broken:
        return _CORRELATION.size, None, broken
    body, error = _read_body(name, version, frame, at)
    return at, body, error


def response_body_start(data: bytes, name: str, version: int) -> int:
    """Where the body of a response begins: after the correlation id and, in flexible versions, the header's tags."""
    api_key = resync.api_keys().get(name.removesuffix("Response"))
    if api_key is None:
        raise WireError(name, None, "there is no API of this name")
    if not frames.response_header_version(api_key, version):
        return _CORRELATION.size
    return resync.skip_tags(data, _CORRELATION.size, "ResponseHeader")


def _read_body(name: str, version: int, frame: Frame, at: int) -> tuple[Any | None, WireError | None]:
    if frame.missing_bytes:
        return None, WireError(name, len(frame.data), f"{frame.missing_bytes} bytes of the message are missing")
    if frame.cut_bytes:
        return None, WireError(name, len(frame.data), f"{frame.cut_bytes} bytes of the message were not kept")
    try:
        return wire.decoder(name, version)(frame.data, at), None
    except WireError as error:
        return None, error


def _header_only(message: Message) -> Message:
    if not message.frame.data:
        return message
    frame = message.frame._replace(data=b"", cut_bytes=message.frame.size_bytes - 4)
    error = WireError(message.name, None, "its content was discarded because too many requests were waiting")
    return replace(message, body=None, frame=frame, error=error)


def _begins_token_phase(response: Message) -> bool:
    if response.name != "SaslHandshakeResponse" or response.version != 0 or response.body is None:
        return False
    return bool(response.body.error_code == ErrorCode.NONE)


class Connection:
    """The bytes of both directions of one connection in, exchanges and losses out.

    `in_sync` is False if the first bytes may be in the middle of a frame.
    """

    def __init__(self, *, in_sync: bool = True, hold_bytes: int = HOLD_BYTES) -> None:
        self.conversation = Conversation()
        self._readers = {
            Side.CLIENT: FrameReader(resync.next_request, in_sync=in_sync, hold_bytes=hold_bytes),
            Side.BROKER: FrameReader(self._next_response, in_sync=in_sync, hold_bytes=hold_bytes),
        }

    @property
    def held_bytes(self) -> int:
        """The bytes that this connection keeps in memory, without decoded values."""
        waiting = sum(len(message.frame.data) for message in self.conversation.pending)
        return waiting + sum(reader.held_bytes for reader in self._readers.values())

    def receive(self, sender: Side, data: bytes, at_ns: int) -> list[Event]:
        """The next bytes that `sender` sent."""
        self._readers[sender].receive(data, at_ns)
        return list(self._events(sender))

    def receive_gap(self, sender: Side, missing_bytes: int, at_ns: int) -> list[Event]:
        """So many bytes that `sender` sent were not seen."""
        self._readers[sender].receive_gap(missing_bytes, at_ns)
        return list(self._events(sender))

    def close(self, at_ns: int) -> list[Event]:
        """Both directions have ended."""
        events: list[Event] = []
        for sender, reader in self._readers.items():
            last = reader.close(at_ns)
            if isinstance(last, Skipped):
                events.append(Loss(sender, last.lost_bytes, last.passed_bytes, last.at_ns))
            elif last is not None and len(last.data) >= _HEADER_BYTES_MIN[sender]:
                events += self._exchanges(sender, last)
            elif last is not None:
                events.append(Loss(sender, last.missing_bytes, last.size_bytes - last.missing_bytes, last.at_ns))
        return [*events, *self.conversation.close()]

    def _events(self, sender: Side) -> Iterator[Event]:
        reader = self._readers[sender]
        while (event := reader.next_event()) is not None:
            if isinstance(event, Skipped):
                yield Loss(sender, event.lost_bytes, event.passed_bytes, event.at_ns)
            elif self._is_nonsense(sender, event):
                reader.reject(event)
            else:
                yield from self._exchanges(sender, event)

    def _exchanges(self, sender: Side, frame: Frame) -> list[Exchange]:
        return self.conversation.request(frame) if sender is Side.CLIENT else self.conversation.response(frame)

    def _is_nonsense(self, sender: Side, frame: Frame) -> bool:
        """Whether this cannot be a frame, so that the reader must have lost its position before."""
        if self.conversation.is_token_phase or self._answers_token(sender):
            return False
        if sender is Side.CLIENT:
            if frame.found and frame.is_whole:
                return not resync.is_whole_request(frame.data) and not resync.is_foreign_request(frame.data)
            return not resync.is_request_start(frame.data, len(frame.data) + frame.missing_bytes + frame.cut_bytes)
        if len(frame.data) < _CORRELATION.size:
            return not frame.missing_bytes
        return frame.found and frame.is_whole and not self._is_response(frame.data)

    def _answers_token(self, sender: Side) -> bool:
        pending = self.conversation.pending
        return sender is Side.BROKER and bool(pending) and pending[0].name == SASL_TOKEN

    def _is_response(self, data: bytes) -> bool:
        (correlation_id,) = _CORRELATION.unpack_from(data)
        request = self.conversation.waits_for(correlation_id)
        if request is None:
            return resync.is_some_response(data)
        response = read_response(Frame(data, len(data) + 4, 0), request)
        # A response in an unknown version cannot be decoded, so only its correlation id is checked.
        return response.error is None or response.error.byte_offset is None

    def _next_response(self, buffer: bytes, starts: object) -> int | None:
        waiting = {message.correlation_id for message in self.conversation.pending}
        assert isinstance(starts, list)
        return resync.next_response(buffer, starts, waiting)
