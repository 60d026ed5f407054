"""A proxy on loopback that flips one bit in some large answers, as a bad wire or a bad memory would."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

LARGE_BYTES = 4096
PIECE_BYTES = 65_536


class FlippingProxy:
    """Passes everything on. `left` large answers get a wrong bit near their end."""

    def __init__(self) -> None:
        self.left = 0
        self.flipped = 0
        self.upstream = ("127.0.0.1", 0)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self.upstream)
                threading.Thread(target=self._pass_on, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._pass_answers, args=(broker, client), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with source, target, suppress(OSError):
            while data := source.recv(PIECE_BYTES):
                target.sendall(data)

    def _pass_answers(self, source: socket.socket, target: socket.socket) -> None:
        with source, target, suppress(OSError):
            while head := _exactly(source, 4):
                frame = bytearray(_exactly(source, int.from_bytes(head)))
                if len(frame) >= LARGE_BYTES and self.left > 0:
                    self.left -= 1
                    self.flipped += 1
                    frame[-100] ^= 0x10
                target.sendall(head + frame)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            return b""
        data += piece
    return data
