"""Reads frames from a stream of bytes that may have holes.

Theory of operation. A `FrameReader` reads one direction of one connection. Bytes and holes go in (`receive`,
`receive_gap`), events come out one at a time (`next_event`): a `Frame`, or `Skipped` for bytes that belong to no frame.

=========  ==============================  =====================================================================
state      on                              then
=========  ==============================  =====================================================================
in sync    four size bytes                 the frame's bytes are gathered
in sync    the frame's last byte           `Frame`; in sync
in sync    a hole that ends in the frame   `missing_bytes` grows; in sync, for the size says where the next begins
in sync    a hole that swallows its end    `Frame` with what there is; searching
in sync    a hole between two frames       searching
in sync    an impossible size, `reject`    searching, from the byte behind the supposed start
searching  the search finds a frame        `Skipped` (what was lost, what was passed over); in sync
=========  ==============================  =====================================================================

The caller supplies the search for the next frame after a hole (`ottla.explain.resync`). A frame found by searching is
marked `found`: a caller that cannot read it calls `reject`, and the search goes on. Without a search an impossible size
raises WireError.

Bounds: at most `hold_bytes` of a frame are kept (the rest is counted in `cut_bytes`), at most SEARCH_BYTES_MAX are
searched at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from ottla.wire.fault import WireError
from ottla.wire.frames import FRAME_MAX_BYTES

__all__ = ["HOLD_BYTES", "SEARCH_BYTES_MAX", "Frame", "FrameReader", "Search", "Skipped"]

HOLD_BYTES = 32 * 1024 * 1024
SEARCH_BYTES_MAX = 128 * 1024
_SIZE = Struct(">i")

Search = Callable[[bytes, Sequence[int]], int | None]
"""`search(buffer, starts)`: where the next frame begins, or None if none can be seen yet.

`starts` are the positions in the buffer at which a segment began: most frames begin with a new segment."""


class Frame(NamedTuple):
    """One frame. `data` is its content without the size, up to the first missing byte."""

    data: bytes
    size_bytes: int
    """The size of the whole frame on the wire, including its four size bytes."""
    at_ns: int
    """When its last byte came."""
    missing_bytes: int = 0
    """Lost inside the frame: neither these nor what follows them is in `data`."""
    cut_bytes: int = 0
    """Received, but not kept, because the frame is larger than `hold_bytes`."""
    found: bool = False
    """Whether it was found by a search: probably a frame, not certainly."""

    @property
    def is_whole(self) -> bool:
        return not self.missing_bytes and not self.cut_bytes


class Skipped(NamedTuple):
    """Bytes between frames: `lost_bytes` never came, `passed_bytes` came but belong to no readable frame."""

    lost_bytes: int
    passed_bytes: int
    at_ns: int


class _ReceivedPiece(NamedTuple):
    """Input: bytes, of which those before `start` are consumed, or a hole."""

    data: bytes
    gap_bytes: int
    at_ns: int
    start: int = 0


class FrameReader:
    """Bytes of one direction in, frames out. `in_sync` is False if reading starts in the middle of a stream."""

    def __init__(self, search: Search | None = None, *, in_sync: bool = True, hold_bytes: int = HOLD_BYTES) -> None:
        assert in_sync or search is not None, "only a search can find the first frame"
        self._search = search
        self._hold_bytes = hold_bytes
        self._pieces: deque[_ReceivedPiece] = deque()
        self._is_searching = not in_sync
        self._buffer = bytearray()  # while searching: what is searched; in sync: the size bytes
        self._starts: list[int] = []
        self._lost_bytes = 0
        self._passed_bytes = 0
        self._found = False
        self._size: int | None = None
        self._begin_frame()

    @property
    def is_searching(self) -> bool:
        return self._is_searching

    @property
    def held_bytes(self) -> int:
        """The bytes that this reader keeps in memory."""
        return len(self._buffer) + self._held + sum(len(piece.data) - piece.start for piece in self._pieces)

    def receive(self, data: bytes, at_ns: int) -> None:
        """The next bytes; call `next_event` until it gives None."""
        if data:
            self._pieces.append(_ReceivedPiece(data, 0, at_ns))

    def receive_gap(self, missing_bytes: int, at_ns: int) -> None:
        """So many bytes of the stream will never come."""
        if missing_bytes > 0:
            self._pieces.append(_ReceivedPiece(b"", missing_bytes, at_ns))

    def next_event(self) -> Frame | Skipped | None:
        """The next frame or skip, or None if more bytes are needed."""
        while self._pieces:
            piece = self._pieces.popleft()
            if self._is_searching:
                event: Frame | Skipped | None = self._search_piece(piece)
            else:
                event = self._frame_gap(piece) if piece.gap_bytes else self._frame_bytes(piece)
            if event is not None:
                return event
        return None

    def reject(self, frame: Frame) -> None:
        """The last frame was not one: search for the next after its first byte."""
        if frame.is_whole:
            again = _SIZE.pack(frame.size_bytes - _SIZE.size) + frame.data
            self._pieces.appendleft(_ReceivedPiece(again[1:], 0, frame.at_ns))
            self._passed_bytes += 1
        else:
            self._passed_bytes += frame.size_bytes - frame.missing_bytes
            self._lost_bytes += frame.missing_bytes
        self._begin_search()

    def close(self, at_ns: int) -> Frame | Skipped | None:
        """The stream has ended: returns the rest as an event."""
        self._pieces.clear()
        if self._is_searching:
            self._passed_bytes += len(self._buffer)
            self._buffer.clear()
            return self._skipped(at_ns)
        if self._size is None:
            passed = len(self._buffer)
            self._buffer.clear()
            return Skipped(0, passed, at_ns) if passed else None
        return self._finish(at_ns, self._missing + self._size - self._got)

    # --- in sync --------------------------------------------------------------------------------------------------

    def _begin_frame(self) -> None:
        self._size = None
        self._parts: list[bytes] = []
        self._held = 0
        self._got = 0
        self._missing = 0
        self._cut = 0

    def _frame_bytes(self, piece: _ReceivedPiece) -> Frame | None:
        data, at = piece.data, piece.start
        if self._size is None:
            need = _SIZE.size - len(self._buffer)
            self._buffer += data[at : at + need]
            at += need
            if len(self._buffer) < _SIZE.size or not self._take_size(piece, at):
                return None
        assert self._size is not None
        end = at + self._size - self._got
        self._keep(data[at:end])
        if end < len(data):
            self._pieces.appendleft(piece._replace(start=end))
        return self._finish(piece.at_ns, self._missing) if self._got == self._size else None

    def _take_size(self, piece: _ReceivedPiece, at: int) -> bool:
        """Read the size; False if it is impossible and the search has begun after its first byte."""
        (size,) = _SIZE.unpack(self._buffer)
        if 0 <= size <= FRAME_MAX_BYTES:
            self._size = size
            self._buffer.clear()
            return True
        if self._search is None:
            raise WireError("Size", None, f"a frame of {size} bytes; at most {FRAME_MAX_BYTES} are taken")
        again = bytes(self._buffer[1:]) + piece.data[at:]
        self._passed_bytes += 1
        self._begin_search()
        self._pieces.appendleft(_ReceivedPiece(again, 0, piece.at_ns))
        return False

    def _keep(self, data: bytes) -> None:
        self._got += len(data)
        if self._missing:  # nothing can be read after a hole
            return
        room = self._hold_bytes - self._held
        if len(data) > room:
            self._cut += len(data) - max(room, 0)
            data = data[: max(room, 0)]
        self._held += len(data)
        self._parts.append(data)

    def _frame_gap(self, piece: _ReceivedPiece) -> Frame | None:
        gap = piece.gap_bytes
        left = 0 if self._size is None else self._size - self._got
        if self._size is not None and gap <= left:
            self._got += gap
            self._missing += gap
            return self._finish(piece.at_ns, self._missing) if self._got == self._size else None
        event = None
        if self._size is None:
            self._passed_bytes += len(self._buffer)
        else:
            event = self._finish(piece.at_ns, self._missing + left)
        self._lost_bytes += gap - left
        self._begin_search()
        return event

    def _finish(self, at_ns: int, missing_bytes: int) -> Frame:
        assert self._size is not None
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        frame = Frame(data, self._size + _SIZE.size, at_ns, missing_bytes, self._cut, self._found)
        self._found = False
        self._begin_frame()
        return frame

    # --- searching ------------------------------------------------------------------------------------------------

    def _begin_search(self) -> None:
        assert self._search is not None, "a gap, and no way to find the next frame"
        self._begin_frame()
        self._buffer.clear()
        self._starts.clear()
        self._is_searching = True

    def _search_piece(self, piece: _ReceivedPiece) -> Skipped | None:
        assert self._search is not None
        if piece.gap_bytes:  # no frame spans it, for its size could not be trusted
            self._passed_bytes += len(self._buffer)
            self._lost_bytes += piece.gap_bytes
            self._buffer.clear()
            self._starts.clear()
            return None
        self._starts.append(len(self._buffer))
        self._buffer += piece.data[piece.start :]
        position = self._search(bytes(self._buffer), self._starts)
        if position is None:
            self._forget_front()
            return None
        self._passed_bytes += position
        self._pieces.appendleft(_ReceivedPiece(bytes(self._buffer[position:]), 0, piece.at_ns))
        self._buffer.clear()
        self._starts.clear()
        self._is_searching = False
        self._found = True
        return self._skipped(piece.at_ns)

    def _forget_front(self) -> None:
        excess = len(self._buffer) - SEARCH_BYTES_MAX
        if excess > 0:
            excess += SEARCH_BYTES_MAX // 2
            del self._buffer[:excess]
            self._starts = [start - excess for start in self._starts if start >= excess]
            self._passed_bytes += excess

    def _skipped(self, at_ns: int) -> Skipped | None:
        lost, passed = self._lost_bytes, self._passed_bytes
        self._lost_bytes = self._passed_bytes = 0
        return Skipped(lost, passed, at_ns) if lost or passed else None
