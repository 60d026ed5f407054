"""TCP reassembly: segments in any order become the bytes that were sent.

Theory of operation. A `Direction` knows the position in the stream up to which it has returned bytes. Sequence numbers
are compared with it modulo 2^32. A segment at this position is returned, with the held segments that follow it; one
beyond it is held; bytes before it were seen already (a retransmission) and are dropped. Where segments overlap, the
bytes that came first count.

A hole becomes a `Gap` of so many bytes when it cannot be filled any more:

- more than HELD_BYTES_MAX are held behind it;
- the stream ends: RST, FIN from both sides, the end of the capture;
- the other side has acknowledged the missing bytes: they will not be sent again, so the capture has lost them.
  PATIENCE_PACKETS more packets are read first, because captures are sometimes out of order.

While the client's direction has such a hole, the broker's bytes are held back: no response may overtake its request.

A stream whose beginning was not captured starts at its first segment.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

__all__ = ["HELD_BYTES_MAX", "PATIENCE_PACKETS", "Direction", "Duplex", "Gap"]

HELD_BYTES_MAX = 4 * 1024 * 1024
PATIENCE_PACKETS = 16
ACKNOWLEDGED_AHEAD_MAX = 64 * 1024 * 1024
"""More than any TCP window: a larger distance means damage, or a loss that shows in other ways."""
_MODULUS = 1 << 32
_HALF = 1 << 31


class Gap(NamedTuple):
    """Bytes that were sent but are not in the capture."""

    missing_bytes: int


StreamPiece = bytes | Gap


class _Held(NamedTuple):
    position: int
    arrival: int
    """Breaks ties: of two segments at one position, the one that came first counts."""
    data: bytes


class Direction:
    """One direction of a connection. Positions count the bytes of the stream from 0, without end."""

    def __init__(self, *, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._next: int | None = None  # the sequence number of the next byte
        self._position = 0
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._held_bytes_max = held_bytes_max
        self._arrivals = 0
        self._acknowledged = 0
        self._end: int | None = None

    @property
    def has_started(self) -> bool:
        return self._next is not None

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    @property
    def has_ended(self) -> bool:
        """Whether everything up to the FIN has been returned."""
        return self._end is not None and self._position >= self._end

    @property
    def lacks_proven(self) -> bool:
        """Whether the other side has acknowledged bytes that are missing here: they will not be sent again."""
        return self._acknowledged > self._position

    def start(self, sequence: int) -> None:
        """The SYN had this sequence number; the first byte has the next one."""
        self._next = (sequence + 1) % _MODULUS

    def segment(self, sequence: int, data: bytes) -> Iterator[StreamPiece]:
        """The pieces that this segment completes."""
        if not data:
            return
        if self._next is None:
            self._next = sequence
        position = self._position + self._ahead(sequence)
        if position > self._position:
            self._hold(position, data)
            while self._held_bytes > self._held_bytes_max:
                yield from self.give_up_hole()
            return
        fresh = data[self._position - position :]
        if fresh:
            yield self._hand_out(fresh)
            yield from self._continued()

    def acknowledge(self, number: int) -> None:
        """The other side has everything before this sequence number."""
        if self._next is not None and self._ahead(number) <= ACKNOWLEDGED_AHEAD_MAX:
            position = self._position + self._ahead(number)
            if self._end is not None:
                position = min(position, self._end)  # a FIN is acknowledged like a byte
            self._acknowledged = max(self._acknowledged, position)

    def finish(self, sequence: int) -> None:
        """A FIN with this sequence number (after the segment's data): nothing comes at or after it."""
        if self._next is None:
            self._next = sequence
        self._end = max(self._position + self._ahead(sequence), self._position)

    def give_up_hole(self) -> Iterator[StreamPiece]:
        """Return a gap up to the next byte that is held, or that is known to have been sent, and what follows it."""
        target = self._held[0].position if self._held else max(self._acknowledged, self._end or 0)
        missing = target - self._position
        if missing > 0:
            self._move(missing)
            # A FIN is acknowledged like a byte; this is all that shows of one that was not captured.
            if missing > 1 or self._held or self._end is not None:
                yield Gap(missing)
        yield from self._continued()

    def flush(self) -> Iterator[StreamPiece]:
        """The stream has ended: everything that is still held, with gaps between."""
        while self._held or self.lacks_proven or (self._end is not None and self._position < self._end):
            yield from self.give_up_hole()

    def _ahead(self, sequence: int) -> int:
        """The distance of a sequence number from the next byte; below 0 for earlier bytes."""
        assert self._next is not None
        return (sequence - self._next + _HALF) % _MODULUS - _HALF

    def _move(self, count: int) -> None:
        assert self._next is not None
        self._position += count
        self._next = (self._next + count) % _MODULUS

    def _hand_out(self, data: bytes) -> bytes:
        self._move(len(data))
        return data

    def _hold(self, position: int, data: bytes) -> None:
        self._arrivals += 1
        held = _Held(position, self._arrivals, data)
        for other in self._held:
            if other.position == position and len(other.data) >= len(data):
                return  # sent twice
            if other.position > position:
                break
        insort(self._held, held)
        self._held_bytes += len(data)

    def _continued(self) -> Iterator[StreamPiece]:
        """The held segments that follow now."""
        while self._held and self._held[0].position <= self._position:
            held = self._held.pop(0)
            self._held_bytes -= len(held.data)
            fresh = held.data[self._position - held.position :]
            if fresh:
                yield self._hand_out(fresh)


S = TypeVar("S")


class Duplex(Generic[S]):
    """Both directions of a connection. `asker` and `answerer` are the caller's names for the two senders."""

    def __init__(self, asker: S, answerer: S, *, patience_packets: int = PATIENCE_PACKETS) -> None:
        self.directions = {asker: Direction(), answerer: Direction()}
        self._asker = asker
        self._answerer = answerer
        self._kept_back: list[tuple[S, StreamPiece]] = []  # of the answerer
        self._patience = patience_packets
        self._waited = {asker: 0, answerer: 0}

    @property
    def held_bytes(self) -> int:
        kept_back = sum(len(piece) for _, piece in self._kept_back if isinstance(piece, bytes))
        return kept_back + sum(direction.held_bytes for direction in self.directions.values())

    @property
    def has_ended(self) -> bool:
        return all(direction.has_ended for direction in self.directions.values())

    def turn_round(self) -> None:
        """Swap the two: the answerer sends requests."""
        self._asker, self._answerer = self._answerer, self._asker

    def segment(
        self, sender: S, sequence: int, data: bytes, acknowledged: int | None, *, is_fin: bool = False
    ) -> list[tuple[S, StreamPiece]]:
        """The pieces that are complete now, each with its sender."""
        direction = self.directions[sender]
        new = list(direction.segment(sequence, data))
        if is_fin:
            direction.finish((sequence + len(data)) % _MODULUS)
        if acknowledged is not None:
            other = self._answerer if sender == self._asker else self._asker
            self.directions[other].acknowledge(acknowledged)
        found: dict[S, list[StreamPiece]] = {self._asker: [], self._answerer: []} | {sender: new}
        for who, pieces in found.items():
            pieces += self._given_up(who)
        return self._ordered(found)

    def flush(self) -> list[tuple[S, StreamPiece]]:
        """The connection is over."""
        return self._ordered({who: list(direction.flush()) for who, direction in self.directions.items()})

    def _given_up(self, who: S) -> list[StreamPiece]:
        """The gap of this direction, once enough packets have passed."""
        direction = self.directions[who]
        if not direction.lacks_proven:
            self._waited[who] = 0
            return []
        self._waited[who] += 1
        return list(direction.give_up_hole()) if self._waited[who] > self._patience else []

    def _ordered(self, found: dict[S, list[StreamPiece]]) -> list[tuple[S, StreamPiece]]:
        """Requests before responses, and no responses while a request is known to be missing."""
        out = [(self._asker, piece) for piece in found[self._asker]]
        self._kept_back += [(self._answerer, piece) for piece in found[self._answerer]]
        if not self.directions[self._asker].lacks_proven:
            out += self._kept_back
            self._kept_back = []
        return out
