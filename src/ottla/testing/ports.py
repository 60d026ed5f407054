"""Free ports of this machine, kept from other processes while nothing listens on them."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import Final

__all__ = ["LOOPBACK", "PortReservation"]

LOOPBACK: Final = "127.0.0.1"

_MAY_STAY: Final = sys.platform == "linux"
"""Whether another process can listen on a port that is bound here, if both set SO_REUSEADDR."""


class PortReservation:
    """A port that no other program gets by chance. Nothing listens, so who connects is refused."""

    def __init__(self, port: int = 0, host: str = LOOPBACK) -> None:
        """Port 0 takes a free one. OSError if somebody else has it."""
        self.host = host
        self._sock: socket.socket | None = _bound(host, port)
        self.port: int = self._sock.getsockname()[1]

    def release(self) -> None:
        """Let another process listen."""
        if not _MAY_STAY:
            self.close()

    def renew(self) -> None:
        """Keep the port again, when that process has ended."""
        if self._sock is None:
            with contextlib.suppress(OSError):  # somebody was faster, and the next start will say so
                self._sock = _bound(self.host, self.port)

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def _bound(host: str, port: int) -> socket.socket:
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock
