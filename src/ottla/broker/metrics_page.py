"""The page with the metrics, over HTTP: one path, one answer, the connection closed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

__all__ = ["MetricsPage"]

_REQUEST_SECONDS: Final = 10
_PATHS: Final = (b"/metrics", b"/")


class MetricsPage:
    """Serves the text that `page` gives."""

    def __init__(self, page: Callable[[], str]) -> None:
        self._page = page
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; gives the port. Raises OSError."""
        self._server = await asyncio.start_server(self._answer, host or None, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = [*head.split(b"\r\n", 1)[0].split(b" "), b"", b""]
                writer.write(self._response(method, path.partition(b"?")[0]))
                await writer.drain()
        writer.close()

    def _response(self, method: bytes, path: bytes) -> bytes:
        status, text = b"200 OK", ""
        if method not in (b"GET", b"HEAD"):
            status = b"405 Method Not Allowed"
        elif path not in _PATHS:
            status = b"404 Not Found"
        else:
            text = self._page()
        body = text.encode()
        head = b"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n" % status
        head += b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        return head if method == b"HEAD" else head + body

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
