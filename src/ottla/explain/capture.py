"""Captures: from packets to the conversations of Kafka's clients with their brokers.

Theory of operation. Each pair of endpoints is a flow:

=========  ===============================================  ===========================================================
state      on                                               then
=========  ===============================================  ===========================================================
undecided  the client's first bytes begin a request         reading; who sent the SYN is the client
undecided  in mid-stream a segment begins with a request    reading, and what came just before is read too
undecided  a TLS handshake                                  foreign, with a notice: nothing in it can be read
undecided  anything else at the start of a connection       foreign
reading    bytes and gaps                                   exchanges and losses (`ottla.explain.exchanges`)
any        RST, FIN from both sides, a new SYN              over: what was left is handed out
=========  ===============================================  ===========================================================

So the port does not matter; `ports` restricts flows to those that have one of them, and says who the broker is.

Memory is bounded: a flow that is not read keeps UNDECIDED_BYTES_MAX at most, all flows together HELD_BYTES_MAX; the
least recently used flow is ended when there are more bytes than that, or more flows than FLOWS_MAX.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Literal, NamedTuple

from ottla.explain import resync
from ottla.explain.capture_file import CaptureError, RawPacket
from ottla.explain.capture_packet import LINK_TYPES, Endpoint, Segment, endpoint_text, read_segment
from ottla.explain.exchanges import Connection, Exchange, Loss, Side
from ottla.explain.reassembly import Duplex, Gap
from ottla.explain.show_exchange import Label
from ottla.explain.stream import HOLD_BYTES

__all__ = ["Capture", "Notice", "Seen", "Tally"]

FLOWS_MAX = 10_000
HELD_BYTES_MAX = 256 * 1024 * 1024
UNDECIDED_BYTES_MAX = 128 * 1024
_SIZE = Struct(">i")
_TLS_HANDSHAKE = b"\x16\x03"

State = Literal["undecided", "reading", "foreign", "over"]


class Seen(NamedTuple):
    """An exchange or a loss, and its connection."""

    label: Label
    event: Exchange | Loss


class Notice(NamedTuple):
    """A note about a connection."""

    label: Label
    text: str
    at_ns: int


@dataclass(slots=True)
class Tally:
    """Counts of packets and connections in a capture."""

    packet_count: int = 0
    segment_count: int = 0
    """Packets with TCP in them."""
    connection_count: int = 0
    """Connections that speak Kafka's protocol."""
    tls_count: int = 0
    foreign_count: int = 0
    """Other TCP connections."""
    unknown_links: set[int] = field(default_factory=set)
    """Link types that cannot be read."""
    end: int = 0
    """How far the file has been read."""


class Capture:
    """Packets in, exchanges out; `tally` counts on the way."""

    def __init__(
        self, ports: Collection[int] = (), *, hold_bytes: int = HOLD_BYTES, held_bytes_max: int = HELD_BYTES_MAX
    ) -> None:
        self.tally = Tally()
        self._ports = frozenset(ports)
        self._hold_bytes = hold_bytes
        self._held_bytes_max = held_bytes_max
        self._held_bytes = 0
        self._flows: OrderedDict[frozenset[Endpoint], _Flow] = OrderedDict()
        self._at_ns = 0

    def read(self, packets: Iterable[RawPacket]) -> Iterator[Seen | Notice]:
        """Exchanges, losses and notices of a capture. If it is damaged, CaptureError is raised after the last one."""
        broken: CaptureError | None = None
        try:
            for packet in packets:
                yield from self._packet(packet)
        except CaptureError as error:
            broken = error
        for flow in self._flows.values():
            yield from flow.end(self._at_ns)
        self._flows.clear()
        if broken is not None:
            raise broken

    @property
    def held_bytes(self) -> int:
        """The bytes that are kept in memory for all flows."""
        return self._held_bytes

    def _packet(self, packet: RawPacket) -> Iterator[Seen | Notice]:
        self.tally.packet_count += 1
        self.tally.end = packet.end
        self._at_ns = packet.at_ns
        if packet.link_type not in LINK_TYPES:
            self.tally.unknown_links.add(packet.link_type)
            return
        segment = read_segment(packet.link_type, packet.data)
        if segment is None:
            return
        self.tally.segment_count += 1
        if not self._ports or segment.source[1] in self._ports or segment.target[1] in self._ports:
            yield from self._segment(segment, packet.at_ns)

    def _segment(self, segment: Segment, at_ns: int) -> Iterator[Seen | Notice]:
        key = frozenset((segment.source, segment.target))
        flow = self._flows.get(key)
        if flow is not None and flow.is_followed_by(segment):
            yield from self._drop(key, at_ns)
            flow = None
        if flow is None:
            flow = self._flows[key] = self._new_flow(segment)
        self._flows.move_to_end(key)
        yield from flow.segment(segment, at_ns)
        self._weigh(flow)
        while len(self._flows) > FLOWS_MAX or (self._held_bytes > self._held_bytes_max and len(self._flows) > 1):
            yield from self._drop(next(iter(self._flows)), at_ns)

    def _drop(self, key: frozenset[Endpoint], at_ns: int) -> Iterator[Seen | Notice]:
        flow = self._flows.pop(key)
        yield from flow.end(at_ns)
        self._weigh(flow)

    def _weigh(self, flow: _Flow) -> None:
        """Update the sum of the bytes that all flows hold, without asking each flow for every packet."""
        before, flow.weight = flow.weight, flow.held_bytes
        self._held_bytes += flow.weight - before

    def _new_flow(self, segment: Segment) -> _Flow:
        """The client sends the SYN. In mid-stream it is the side without the broker's port, or with the higher port."""
        client, broker = segment.source, segment.target
        if segment.is_syn:
            if segment.acknowledged is not None:  # the answer to a SYN that was not captured
                client, broker = broker, client
        elif self._ports:
            if segment.source[1] in self._ports:
                client, broker = broker, client
        elif client[1] < broker[1]:
            client, broker = broker, client
        return _Flow(client, broker, self.tally, hold_bytes=self._hold_bytes, is_chosen=bool(self._ports))


class _SentPiece(NamedTuple):
    sender: Endpoint
    piece: bytes | Gap
    at_ns: int


class _Flow:
    """One TCP connection, as far as the capture shows it."""

    def __init__(self, client: Endpoint, broker: Endpoint, tally: Tally, *, hold_bytes: int, is_chosen: bool) -> None:
        self.state: State = "undecided"
        self.weight = 0  # what it held when it was last weighed
        self._client = client
        self._broker = broker
        self._tally = tally
        self._hold_bytes = hold_bytes
        self._is_chosen = is_chosen
        self._duplex = Duplex(client, broker)
        self._syns: dict[Endpoint, int] = {}
        self._recent: deque[_SentPiece] = deque()
        self._recent_bytes = 0
        self._connection: Connection | None = None
        self._label = Label(0, endpoint_text(client), endpoint_text(broker))

    @property
    def held_bytes(self) -> int:
        held = self._duplex.held_bytes + self._recent_bytes
        return held if self._connection is None else held + self._connection.held_bytes

    def is_followed_by(self, segment: Segment) -> bool:
        """Whether the segment opens another connection between the same endpoints."""
        if not segment.is_syn:
            return False
        known = self._syns.get(segment.source)
        if known is None:
            return self.state != "undecided"
        return known != segment.sequence

    def segment(self, segment: Segment, at_ns: int) -> Iterator[Seen | Notice]:
        if self.state == "over":
            return
        if segment.is_syn:
            self._syns[segment.source] = segment.sequence
            self._duplex.directions[segment.source].start(segment.sequence)
            return
        if self.state != "foreign":
            pieces = self._duplex.segment(
                segment.source, segment.sequence, segment.payload, segment.acknowledged, is_fin=segment.is_fin
            )
            yield from self._pieces(pieces, at_ns)
        if segment.is_rst or self._duplex.has_ended:
            yield from self.end(at_ns)

    def end(self, at_ns: int) -> Iterator[Seen | Notice]:
        """The connection has ended, or is dropped."""
        if self.state in ("undecided", "reading"):
            yield from self._pieces(self._duplex.flush(), at_ns)
        if self._connection is not None:
            for event in self._connection.close(at_ns):
                yield Seen(self._label, event)
        elif self.state == "undecided" and self._recent:
            self._tally.foreign_count += 1
        self._connection = None
        self._forget()
        self.state = "over"

    def _pieces(self, pieces: list[tuple[Endpoint, bytes | Gap]], at_ns: int) -> Iterator[Seen | Notice]:
        for sender, piece in pieces:
            if self.state == "reading":
                yield from self._read(_SentPiece(sender, piece, at_ns))
            elif self.state == "undecided":
                self._remember(_SentPiece(sender, piece, at_ns))
                yield from self._decide(sender, piece, at_ns)

    def _read(self, piece: _SentPiece) -> Iterator[Seen]:
        assert self._connection is not None
        side = Side.CLIENT if piece.sender == self._client else Side.BROKER
        if isinstance(piece.piece, Gap):
            events = self._connection.receive_gap(side, piece.piece.missing_bytes, piece.at_ns)
        else:
            events = self._connection.receive(side, piece.piece, piece.at_ns)
        for event in events:
            yield Seen(self._label, event)

    # --- deciding -------------------------------------------------------------------------------------------------

    def _remember(self, piece: _SentPiece) -> None:
        self._recent.append(piece)
        self._recent_bytes += _weight(piece)
        while self._recent_bytes > UNDECIDED_BYTES_MAX and len(self._recent) > 1:
            self._recent_bytes -= _weight(self._recent.popleft())

    def _forget(self) -> None:
        self._recent.clear()
        self._recent_bytes = 0

    def _decide(self, sender: Endpoint, piece: bytes | Gap, at_ns: int) -> Iterator[Seen | Notice]:
        if isinstance(piece, Gap):
            return
        is_first = bool(self._syns) and all(isinstance(recent.piece, bytes) for recent in self._recent)
        head = self._head(sender) if is_first else piece
        if head.startswith(_TLS_HANDSHAKE):
            self._tally.tls_count += 1
            self.state = "foreign"
            self._forget()
            yield Notice(self._label, "TLS: encrypted, so nothing in it can be read", at_ns)
        elif self._is_chosen or begins_request(head):
            if not is_first and not self._is_chosen and sender != self._client:
                self._turn_round()
            yield from self._begin(in_sync=is_first)
        elif is_first and (sender != self._client or len(head) >= _SIZE.size + resync.REQUEST_BYTES_MIN):
            self._tally.foreign_count += 1
            self.state = "foreign"
            self._forget()

    def _head(self, sender: Endpoint) -> bytes:
        """The first bytes of a direction that was captured from its beginning."""
        head = b""
        for recent in self._recent:
            if recent.sender == sender and isinstance(recent.piece, bytes):
                head += recent.piece
                if len(head) > resync.CLIENT_ID_BYTES_MAX:
                    break
        return head

    def _turn_round(self) -> None:
        """Swap client and broker: in mid-stream the ports may mislead, but only the client sends requests."""
        self._client, self._broker = self._broker, self._client
        self._duplex.turn_round()

    def _begin(self, *, in_sync: bool) -> Iterator[Seen]:
        self._tally.connection_count += 1
        number = self._tally.connection_count
        self._label = Label(number, endpoint_text(self._client), endpoint_text(self._broker))
        self._connection = Connection(in_sync=in_sync, hold_bytes=self._hold_bytes)
        self.state = "reading"
        recent = list(self._recent)
        self._forget()
        for piece in recent:
            yield from self._read(piece)


def _weight(piece: _SentPiece) -> int:
    return len(piece.piece) if isinstance(piece.piece, bytes) else 0


def begins_request(data: bytes) -> bool:
    """Whether bytes begin with a frame that holds a request, of an API and version that exist."""
    if len(data) < _SIZE.size + resync.REQUEST_BYTES_MIN:
        return False
    (size,) = _SIZE.unpack_from(data)
    content = data[_SIZE.size : _SIZE.size + max(size, 0)]
    if not resync.is_request_start(content, size) or not resync.has_known_version(content):
        return False
    return len(content) < size or resync.is_whole_request(content) or resync.is_foreign_request(content)
