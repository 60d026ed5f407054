"""A socket that speaks TLS and is used as a plain one that does not block.

Theory of operation. OpenSSL works on two buffers in memory. `recv_into` reads what the socket has, up to a bound, and
gives all that can be decrypted of it, so that nothing is left of which the loop would not tell. `send` encrypts one
piece, and only when the piece before it has left: more never waits here. Both go on with the handshake first. What is
sent before the handshake is over waits for it.

What OpenSSL has to say of its own (handshake, alerts) leaves with whatever is called next; `has_unsent` tells whether
the socket did not take it all.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Final

__all__ = ["PIECE_BYTES", "ReceiveBuffer", "TlsSocket"]

PIECE_BYTES: Final = 256 * 1024
_RECORD_BYTES: Final = 16 * 1024
_RECEIVE_BYTES: Final = PIECE_BYTES - 2 * _RECORD_BYTES
"""Together with the begun record that OpenSSL holds this is less than callers have room for."""


class ReceiveBuffer(threading.local):
    """Where all connections of a thread receive, one after the other: memory of this size taken anew for each read
    would cost more. Each thread has its own `memory`, for a process may run several nodes."""

    def __init__(self, size_bytes: int) -> None:
        self.memory = memoryview(bytearray(size_bytes))


_received: Final = ReceiveBuffer(_RECEIVE_BYTES)


class TlsSocket:
    __slots__ = ("_early", "_has_ended", "_incoming", "_outgoing", "_sock", "_tls", "_unsent", "is_ready")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_hostname: str | None = None) -> None:
        """`server_hostname` is whom a client wants to speak to; None for a server."""
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_hostname is None, server_hostname=server_hostname
        )
        self._unsent = memoryview(b"")
        self._early = bytearray()
        self._has_ended = False
        self.is_ready = False
        """Whether the handshake is over."""

    def fileno(self) -> int:
        return self._sock.fileno()

    def getsockopt(self, level: int, option: int) -> int:
        return self._sock.getsockopt(level, option)

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        self._sock.setsockopt(level, option, value)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent) or bool(self._outgoing.pending)

    @property
    def peer_certificate(self) -> bytes | None:
        """The other end's certificate in DER, if it has shown one."""
        return self._tls.getpeercert(binary_form=True)

    # --- reading ------------------------------------------------------------------------------------------------------

    def recv(self, size: int) -> bytes:
        """Some bytes; at most `size` of them, the rest is there for the next call."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(memoryview(buffer))])

    def recv_into(self, buffer: memoryview) -> int:
        """Bytes that have come; 0 at their end. BlockingIOError if there are none now, SSLError if it is no TLS."""
        size = self._decrypt(buffer)
        received = _received.memory
        while not size and not self._has_ended:
            count = self._sock.recv_into(received)
            if not count:
                self._has_ended = True
                break
            self._incoming.write(received[:count])
            if not self.is_ready:
                self._shake_hands()
            size = self._decrypt(buffer)
        return size

    def _decrypt(self, buffer: memoryview) -> int:
        """What can be decrypted now."""
        size = 0
        try:
            while self.is_ready and size < len(buffer):
                count = self._tls.read(len(buffer) - size, buffer[size:])
                if not count:
                    self._has_ended = True
                    break
                size += int(count)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._has_ended = True
        if self._outgoing.pending:
            self.flush()
        return size

    @property
    def has_more(self) -> bool:
        """Whether bytes can be read that the socket no longer tells of."""
        return bool(self._tls.pending()) or (self.is_ready and self._incoming.pending > 0)

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            return
        except ssl.SSLError:
            with suppress(OSError):
                self.flush()  # the alert that says why
            raise
        self.is_ready = True
        if self._early:
            early, self._early = self._early, bytearray()
            self._encrypt(memoryview(early))
        self.flush()

    # --- writing ------------------------------------------------------------------------------------------------------

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Take a piece of the data, and send it. BlockingIOError if the piece before it has not left."""
        if not self.is_ready:
            self._early += data
            self._shake_hands()
            return len(data)
        self.flush()
        if self.has_unsent:
            raise BlockingIOError
        size = self._encrypt(memoryview(data)[:PIECE_BYTES])
        self.flush()
        return size

    def _encrypt(self, data: memoryview) -> int:
        at = 0
        while at < len(data):
            at += self._tls.write(data[at:])
        return at

    def flush(self) -> None:
        """Send what is encrypted, as far as the socket takes it. Raises OSError if the other end is gone."""
        while self._unsent or self._outgoing.pending:
            if not self._unsent:
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent = self._sock.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return
            self._unsent = self._unsent[sent:]

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Tell the other end, if it takes it at once, and close."""
        if self._sock.fileno() == -1:
            return
        with suppress(OSError, ValueError):
            if self.is_ready and not self._has_ended:
                self._tls.unwrap()
        with suppress(OSError):
            self.flush()
        self._sock.close()
