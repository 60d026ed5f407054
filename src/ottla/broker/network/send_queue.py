"""The send queue of a connection: bytes, and spans of log files that go to the socket by `sendfile`.

`send` is called once a turn and sends as much as the peer accepts. Small parts are joined, since a system call costs
more than copying them.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from ottla.broker.network.request import Close, CloseCause
from ottla.log.files import LogFile

__all__ = ["FileSpan", "Part", "SendQueue"]

# Below this, reading a span and sending it with its neighbours is cheaper than a system call of its own.
SENDFILE_MIN_BYTES: Final = 32 * 1024
# Windows has no sendfile; spans are read in pieces there.
_SENDFILE: Final = hasattr(os, "sendfile")
_NEVER_BYTES: Final = 1 << 62
_MORE_FOLLOWS: Final = getattr(socket, "MSG_MORE", 0)
# What is joined into one send at most. More than the socket's buffer would be cut off again.
JOINED_MAX_BYTES: Final = 256 * 1024


class FileSpan:
    """Bytes of a log file. The file stays open until the span is sent or released."""

    __slots__ = ("_handle", "file", "length", "position")

    def __init__(self, file: LogFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self._handle = file.pin()

    def __len__(self) -> int:
        return self.length

    def read(self, max_bytes: int) -> bytes:
        """The next bytes; the last of them release the file."""
        data = self._handle.read(min(self.length, max_bytes), self.position)
        if not data:
            raise _cut_off(self)
        self.position += len(data)
        self.length -= len(data)
        if self.length == 0:
            self.release()
        return data

    def send_some(self, sock: socket.socket) -> int:
        sent = os.sendfile(sock.fileno(), self._handle.fileno(), self.position, self.length)
        self.position += sent
        self.length -= sent
        return sent

    def release(self) -> None:
        self.file.unpin()


Part = bytes | bytearray | memoryview | FileSpan


class Sending(Protocol):
    """A socket, or what encrypts and sends as one. Only a real socket is sent whole files."""

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0, /) -> int: ...


class SendQueue:
    """The parts of responses, in order, and the sum of their lengths."""

    __slots__ = ("_parts", "size_bytes")

    def __init__(self) -> None:
        self._parts: deque[Part] = deque()
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, parts: Sequence[Part]) -> None:
        for part in parts:
            size = len(part)
            if size:
                self._parts.append(part)
                self.size_bytes += size
            elif isinstance(part, FileSpan):
                part.release()

    def send(self, sock: Sending) -> None:
        """Send until all is gone or the socket takes no more; raises OSError when the peer is gone, Close when a
        file has not what it should."""
        # A simulated node has sockets and files in memory.
        sendfile_min_bytes = SENDFILE_MIN_BYTES if _SENDFILE and isinstance(sock, socket.socket) else _NEVER_BYTES
        while self._parts:
            first = self._parts[0]
            try:
                if isinstance(first, FileSpan) and first.length >= sendfile_min_bytes:
                    assert isinstance(sock, socket.socket)
                    sent = self._send_span(sock, first)
                else:
                    sent = self._send_joined(sock, sendfile_min_bytes)
            except (BlockingIOError, InterruptedError):
                return
            self.size_bytes -= sent

    def _send_span(self, sock: socket.socket, span: FileSpan) -> int:
        sent = span.send_some(sock)
        if sent == 0:
            raise _cut_off(span)
        if span.length == 0:
            span.release()
            self._parts.popleft()
        return sent

    def _send_joined(self, sock: Sending, sendfile_min_bytes: int) -> int:
        """Send bytes and short spans together; what the socket did not take stays first."""
        data = self._take_joined(sendfile_min_bytes)
        try:
            # MSG_MORE: the head of an answer waits for the span behind it instead of going in a packet of its own.
            sent = sock.send(data, _MORE_FOLLOWS) if self._parts else sock.send(data)
        except (BlockingIOError, InterruptedError):
            self._parts.appendleft(data)
            raise
        if sent < len(data):
            self._parts.appendleft(memoryview(data)[sent:])
        return sent

    def _take_joined(self, sendfile_min_bytes: int) -> bytes | bytearray | memoryview:
        parts = self._parts
        taken: list[bytes | bytearray | memoryview] = []
        size = 0
        while parts and size < JOINED_MAX_BYTES:
            piece = parts[0]
            if isinstance(piece, FileSpan):
                span = piece
                if span.length >= sendfile_min_bytes:
                    break
                piece = span.read(JOINED_MAX_BYTES)
                if not span.length:
                    parts.popleft()
            else:
                parts.popleft()
            taken.append(piece)
            size += len(piece)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def clear(self) -> None:
        """Drop all parts that are not sent."""
        for part in self._parts:
            if isinstance(part, FileSpan):
                part.release()
        self._parts.clear()
        self.size_bytes = 0


def _cut_off(span: FileSpan) -> Close:
    # The file is shorter than the answer promised: nothing honest can follow on this connection.
    reason = f"{span.file.path} ends before position {span.position + span.length}"
    return Close(reason, CloseCause.UNSENDABLE_ANSWER)
