"""A client that fetches much over TLS and reads slowly: what is encrypted for it waits, and nothing more."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from ottla.broker.network.send_queue import JOINED_MAX_BYTES, FileSpan, SendQueue
from ottla.log.disk import OsDisk
from ottla.log.files import Directory, LogFile, LogStorage, OpenFiles
from ottla.security.tls_socket import PIECE_BYTES
from ottla.testing.certificates import CertificateAuthority
from tests.component.security.tls_pair import client, server, shake_hands
from tests.hostile.reaching import reaches

RESPONSE_BYTES = 4 << 20
READ_BYTES = 10_000


class SlowLink:
    """A socket whose other end takes some bytes now and then."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.room_bytes = 1 << 20
        self.taken_bytes = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv_into(self, buffer: memoryview) -> int:
        return self._sock.recv_into(buffer)

    def send(self, data: memoryview) -> int:
        if not self.room_bytes:
            raise BlockingIOError
        sent = self._sock.send(data[: self.room_bytes])
        self.room_bytes -= sent
        self.taken_bytes += sent
        return sent


@contextmanager
def response_in_a_file(directory: Path) -> Iterator[FileSpan]:
    disk = OsDisk()
    storage = LogStorage(disk, open_files=OpenFiles(disk, limit=2))
    (directory / "0.log").write_bytes(bytes(range(256)) * (RESPONSE_BYTES // 256))
    yield FileSpan(LogFile(Directory(storage, str(directory)), "0.log"), 0, RESPONSE_BYTES)
    storage.open_files.close_all()


@reaches("encrypted")
def a_slow_reader_is_encrypted_for_piece_by_piece(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    authority = CertificateAuthority(directory)
    one, other = socket.socketpair()
    with closing(one), closing(other), response_in_a_file(directory) as response:
        one.setblocking(False)
        other.setblocking(False)
        link = SlowLink(one)
        broker, reader = server(link, authority), client(other, authority)
        shake_hands(reader, broker)
        link.room_bytes = link.taken_bytes = 0
        queue, received, held = SendQueue(), bytearray(), []
        queue.add([response])
        while queue or broker.has_unsent:
            queue.send(broker)
            held.append(RESPONSE_BYTES - response.length - link.taken_bytes)
            link.room_bytes = READ_BYTES
            broker.flush()
            with suppress(BlockingIOError):
                received += reader.recv(2 * READ_BYTES)
        with suppress(BlockingIOError):
            while len(received) < RESPONSE_BYTES:
                received += reader.recv(PIECE_BYTES)
        assert received == bytes(range(256)) * (RESPONSE_BYTES // 256)
        assert PIECE_BYTES <= max(held) <= PIECE_BYTES + JOINED_MAX_BYTES, "one piece is encrypted, one is next"
