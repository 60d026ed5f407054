"""Connections of one thread receive into the same memory; those of two nodes in one process, in two threads, do not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.network.connection import Connection
from ottla.broker.network.request import Close, CloseCause, Peer
from ottla.security.tls_socket import TlsSocket


class FakeSocket:
    """Has these bytes. `meanwhile` happens when they are in the buffer, and before the reader goes on."""

    def __init__(self, data: bytes, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._data = data
        self._meanwhile = meanwhile

    def fileno(self) -> int:
        return 3

    def recv_into(self, buffer: memoryview) -> int:
        buffer[: len(self._data)] = self._data
        self._meanwhile()
        return len(self._data)

    def close(self) -> None: ...


class FramesOnly:
    """Notes each frame, and ends the connection."""

    meter = tap = None

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def read(self, connection: Connection, frame: bytes, now_ms: int) -> None:
        self.frames.append(bytes(frame))
        raise Close("seen", CloseCause.IDLE)


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def connection(sock: FakeSocket, dispatch: FramesOnly) -> Connection:
    def nothing(*_: object) -> Any:
        return 0

    loop: Any = SimpleNamespace(add_reader=nothing, remove_reader=nothing)
    closed = SimpleNamespace(add=nothing)
    owner: Any = SimpleNamespace(
        monotonic_ms=nothing, write_staged=nothing, connection_closed=nothing, closed_connections=closed
    )
    return Connection(loop, sock, Peer("127.0.0.1", 1, "PLAINTEXT"), owner, dispatch, offered_apis=())  # type: ignore[arg-type]


def in_another_thread(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    return run


def test_a_node_in_another_thread_does_not_overwrite_what_was_received():
    ours, theirs = FramesOnly(), FramesOnly()
    other = connection(FakeSocket(frame(b"for the other node")), theirs)
    connection(FakeSocket(frame(b"for us, and longer still"), in_another_thread(other.readable)), ours).readable()
    assert (ours.frames, theirs.frames) == ([b"for us, and longer still"], [b"for the other node"])


def test_nor_what_is_to_be_decrypted(monkeypatch: pytest.MonkeyPatch):
    def tls(sock: FakeSocket) -> tuple[TlsSocket, list[bytes]]:
        taken: list[bytes] = []
        pipe = SimpleNamespace(write=lambda data: taken.append(bytes(data)), pending=0)
        context = SimpleNamespace(wrap_bio=lambda *_, **__: SimpleNamespace())
        made = TlsSocket(sock, context)  # type: ignore[arg-type]
        made._incoming = made._outgoing = pipe  # type: ignore[assignment]
        return made, taken

    def enough(_: TlsSocket) -> None:
        raise BlockingIOError

    monkeypatch.setattr(TlsSocket, "_shake_hands", enough)

    def read(one: TlsSocket) -> None:
        with pytest.raises(BlockingIOError):
            one.recv_into(memoryview(bytearray(9)))

    other, theirs = tls(FakeSocket(b"theirs"))
    one, ours = tls(FakeSocket(b"ours, and longer", in_another_thread(lambda: read(other))))
    read(one)
    assert (ours, theirs) == ([b"ours, and longer"], [b"theirs"])
