"""One proxied connection without sockets: bytes of one side in, bytes for the other side and exchanges out.

Requests are forwarded unchanged. So are responses, piece by piece, except those that may contain addresses of nodes
(`ottla.explain.rewrite`): such a response is collected and rewritten; if nothing changed, its own bytes are forwarded.
A response larger than `hold_bytes` is never collected, to bound the memory.

A side that does not speak Kafka's protocol is *foreign*: its bytes are forwarded without decoding.
"""

from struct import Struct
from typing import NamedTuple

from ottla.explain.exchanges import SASL_TOKEN, Conversation, Exchange, Side
from ottla.explain.rewrite import Mapping, has_addresses, rewrite_frame
from ottla.explain.stream import HOLD_BYTES, Frame, FrameReader
from ottla.wire import WireError
from ottla.wire.frames import FRAME_MAX_BYTES
from ottla.wire.index import MESSAGES

_SIZE = Struct(">i")
_HEAD = Struct(">ii")
"""Size and correlation id, which determine how a response is treated."""
_TLS_HANDSHAKE = b"\x16\x03"


class Passed(NamedTuple):
    """The result for some bytes of the broker: the bytes for the client, and the exchanges that they end."""

    forward: list[bytes]
    exchanges: list[Exchange]


class Session:
    """The two directions of one connection. `mapping` returns the address of a node for the client."""

    def __init__(self, mapping: Mapping, *, hold_bytes: int = HOLD_BYTES) -> None:
        self.foreign: dict[Side, str] = {}
        """Side -> why its bytes cannot be read."""
        self._mapping = mapping
        self._hold_bytes = hold_bytes
        self._conversation = Conversation()
        self._requests = FrameReader(hold_bytes=hold_bytes)
        self._responses = FrameReader(hold_bytes=hold_bytes)
        self._head = b""  # the beginning of a response, up to its correlation id
        self._left_bytes = 0  # the remaining bytes of the current response
        self._is_gathering = False

    def from_client(self, data: bytes, at_ns: int) -> list[Exchange]:
        """The client sent `data`, which is forwarded unchanged; returns the exchanges that it ends."""
        ended: list[Exchange] = []
        if Side.CLIENT in self.foreign:
            return ended
        self._requests.receive(data, at_ns)
        try:
            while isinstance(frame := self._requests.next_event(), Frame):
                ended += self._conversation.request(frame)
        except WireError as refusal:
            self.foreign[Side.CLIENT] = _why_foreign(data, refusal.reason)
        return ended

    def from_broker(self, data: bytes, at_ns: int) -> Passed:
        """The broker sent `data`."""
        if Side.BROKER in self.foreign:
            return Passed([data], [])
        passed = Passed([], [])
        data, self._head = self._head + data, b""
        at = 0
        while at < len(data):
            if not self._left_bytes and not self._begin_response(data, at):
                rest = data[at:]
                if Side.BROKER in self.foreign:
                    passed.forward.append(rest)
                else:
                    self._head = rest
                break
            piece = data[at : at + self._left_bytes]
            at += len(piece)
            self._pass(piece, at_ns, passed)
        return passed

    def close(self) -> list[Exchange]:
        """The connection has ended; returns the unanswered requests."""
        return self._conversation.close()

    def _begin_response(self, data: bytes, at: int) -> bool:
        """Read the head of the next response; False if it is incomplete or not a response."""
        there = len(data) - at
        if there < _SIZE.size:
            return False
        (size,) = _SIZE.unpack_from(data, at)
        if not 0 <= size <= FRAME_MAX_BYTES:
            self.foreign[Side.BROKER] = _why_foreign(data[at:], f"a frame of {size} bytes")
            return False
        if size < _HEAD.size - _SIZE.size:
            self._is_gathering = False
        elif there < _HEAD.size:
            return False
        else:
            self._is_gathering = self._may_need_rewriting(size, _HEAD.unpack_from(data, at)[1])
        self._left_bytes = _SIZE.size + size
        return True

    def _may_need_rewriting(self, size: int, correlation_id: int) -> bool:
        if size > self._hold_bytes or any(waiting.name == SASL_TOKEN for waiting in self._conversation.pending[:1]):
            return False
        request = self._conversation.waits_for(correlation_id)
        return request is not None and has_addresses(f"{request.api}Response", request.version)

    def _pass(self, piece: bytes, at_ns: int, passed: Passed) -> None:
        self._left_bytes -= len(piece)
        if not self._is_gathering:
            passed.forward.append(piece)
        self._responses.receive(piece, at_ns)
        frame = self._responses.next_event()
        if not isinstance(frame, Frame):
            return
        exchanges = self._conversation.response(frame)
        passed.exchanges.extend(exchanges)
        if self._is_gathering:
            passed.forward.extend(rewrite_frame(each.response, self._mapping) for each in exchanges if each.response)


def may_lead_away(exchange: Exchange) -> bool:
    """Whether the response may contain addresses that were not rewritten, because it could not be read."""
    response = exchange.response
    if response is None or response.error is None:
        return False
    entry = MESSAGES.get(response.name)
    return entry is not None and has_addresses(response.name, entry.high)


def _why_foreign(data: bytes, reason: str) -> str:
    if data.startswith(_TLS_HANDSHAKE):
        return "it uses TLS, which the proxy cannot read"
    return f"it does not speak Kafka's protocol ({reason})"
