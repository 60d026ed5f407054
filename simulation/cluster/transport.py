"""What asyncio's clients have of a connection, over a socket of the simulated network."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from simulation.cluster.loop import ClusterLoop
from simulation.cluster.network import Socket

__all__ = ["connect"]

_READ_BYTES = 1 << 18


async def connect(
    loop: ClusterLoop, protocol_factory: Callable[[], Any], address: tuple[str, int]
) -> tuple[Transport, Any]:
    """Connect, and let a protocol have the connection. OSError if that fails."""
    sock: Socket = loop.network.dial(address)
    connected = loop.create_future()
    loop.add_writer(sock.fileno(), lambda: None if connected.done() else connected.set_result(None))
    try:
        await connected
    except BaseException:
        sock.close()
        raise
    finally:
        loop.remove_writer(sock.fileno())
    if sock.error:
        code = sock.error
        sock.close()
        raise OSError(code, os.strerror(code))
    protocol = protocol_factory()
    return Transport(loop, sock, protocol), protocol


class Transport(asyncio.Transport):
    """Reads for a protocol, and writes what it gives."""

    def __init__(self, loop: ClusterLoop, sock: Socket, protocol: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._loop = loop
        self._sock = sock
        self._protocol = protocol
        self._unsent = bytearray()
        self._is_closing = False
        protocol.connection_made(self)
        loop.add_reader(sock.fileno(), self._readable)

    def is_closing(self) -> bool:
        return self._is_closing

    def write(self, data: Any) -> None:  # noqa: ANN401
        if self._is_closing:
            return
        self._unsent += data
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = self._sock.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._sock.fileno(), self._writable)
            self._protocol.pause_writing()
        except OSError as error:
            self._lose(error)

    def _writable(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        self._protocol.resume_writing()
        self._flush()
        if self._is_closing and not self._unsent:
            self._lose(None)

    def _readable(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._protocol.data_received(data)
        else:
            self._protocol.eof_received()
            self._lose(None)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._unsent:
                self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._sock.fileno() == -1:
            return
        self._is_closing = True
        self._sock.close()
        self._loop.call_soon(self._protocol.connection_lost, error)
