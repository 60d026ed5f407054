"""Connections of a client as small as can be, and loads on them: frames are made beforehand, answers hardly looked at.

An answer to a frame that is sent again and again is the same bytes each time, so the first one is decoded, and of the
others the length is compared.
"""

import select
import socket
import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from ottla.wire import frames
from ottla.wire.index import MESSAGES

TIMEOUT_S = 60.0
RECEIVE_BYTES = 1 << 18
CLIENT_ID = "bench"
_SIZE_BYTES = 4


class Connection:
    """One connection; what has come is cut into frames."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def close(self) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def take(self) -> list[bytes]:
        """The frames that have come by now; waits for something if nothing has."""
        more = self.sock.recv(RECEIVE_BYTES)
        if not more:
            raise ConnectionError("closed by the broker")
        data = self._data + more
        found, at = [], 0
        while len(data) - at >= _SIZE_BYTES:
            end = at + _SIZE_BYTES + int.from_bytes(data[at : at + _SIZE_BYTES], "big")
            if end > len(data):
                break
            found.append(data[at + _SIZE_BYTES : end])
            at = end
        self._data = data[at:]
        return found

    def receive(self) -> bytes:
        """The one frame that is awaited."""
        while not (found := self.take()):
            pass
        (content,) = found
        return content

    def call(self, message: object, version: int) -> Any:  # noqa: ANN401
        self.send(frame_of(message, version))
        return body_of(self.receive(), message, version)


def frame_of(message: object, version: int) -> bytes:
    return frames.write_request(message, version, correlation_id=1, client_id=CLIENT_ID)


def body_of(content: bytes, request: object, version: int) -> Any:  # noqa: ANN401
    key = MESSAGES[type(request).__name__].key
    assert key is not None
    return frames.read_response(content, key, version).body


def pipelined(connection: Connection, frame: bytes, count: int, depth: int) -> float:
    """Seconds for so many requests, of which `depth` at a time are sent together."""
    connection.send(frame)
    size = _SIZE_BYTES + len(connection.receive())
    sent = frame * depth
    start = time.perf_counter()
    for _ in range(count // depth):
        connection.send(sent)
        left = size * depth
        while left:
            left -= len(connection.sock.recv(RECEIVE_BYTES))
            assert left >= 0, "an answer is longer than the first one"
    return time.perf_counter() - start


def in_turn(connections: Sequence[Connection], frames_by_connection: Sequence[Sequence[bytes]], count: int) -> float:
    """Seconds for so many requests, one outstanding on each connection, which sends its frames over and over."""
    poll = select.epoll()
    next_frame = {}
    size = 0
    for connection, own in zip(connections, frames_by_connection, strict=True):
        connection.send(own[0])
        size = _SIZE_BYTES + len(connection.receive())
        next_frame[connection.sock.fileno()] = (connection.sock, cycle(own))
        poll.register(connection.sock, select.EPOLLIN)
    start = time.perf_counter()
    for sock, own in next_frame.values():
        sock.sendall(next(own))
    done = 0
    while done < count:
        for number, _ in poll.poll(TIMEOUT_S):
            sock, own = next_frame[number]
            assert len(sock.recv(RECEIVE_BYTES)) == size, "an answer is not as long as the first one"
            done += 1
            sock.sendall(next(own))
    seconds = time.perf_counter() - start
    for sock, _ in next_frame.values():
        sock.recv(RECEIVE_BYTES)
    poll.close()
    return seconds
