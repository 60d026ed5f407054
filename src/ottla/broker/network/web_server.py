"""A minimal HTTP server: one request for a page, then the connection is closed."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from base64 import b64decode
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["Find", "Page", "WebServer", "is_loopback"]

_REQUEST_SECONDS: Final = 10
CONNECTIONS_MAX: Final = 64
_UNAUTHORIZED: Final = "401 Unauthorized"
_FORBIDDEN: Final = "403 Forbidden"
_NOT_FOUND: Final = "404 Not Found"
_NOT_ALLOWED: Final = "405 Method Not Allowed"


class Page(NamedTuple):
    content_type: str
    text: str


Find = Callable[[str], Page | None]
Check = Callable[[str, str, str], bool]
"""Address, user and password -> whether he is let in."""


class WebServer:
    """Serves what `find` gives for a path; None stands for nothing there.

    With `is_local` it answers only those who call it by a name of this machine: a page of somebody else, whose name was
    made to lead here, must not read what is meant for local eyes. With `has_login` it answers only users whom `check`
    lets in (HTTP Basic), and with a TLS context it speaks https.
    """

    def __init__(
        self,
        find: Find = lambda path: None,
        *,
        is_local: bool = False,
        has_login: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.find = find
        self.check: Check = lambda host, user, password: False
        self._is_local = is_local
        self._has_login = has_login
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.connections = 0

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; gives the port. Raises OSError."""
        self._server = await asyncio.start_server(self._answer, host or None, port, ssl=self._tls)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections < CONNECTIONS_MAX:
            self.connections += 1
            try:
                await self._answer_one(reader, writer)
            finally:
                self.connections -= 1
        writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head.decode("latin-1"), writer.get_extra_info("peername")[0]))
                await writer.drain()

    def _response(self, head: str, host: str) -> bytes:
        first, *lines = head.split("\r\n")
        method, target, *_ = [*first.split(" "), "", ""]
        if self._is_local and not _is_local(lines):
            return _encoded(_FORBIDDEN)
        if self._has_login and not self._lets_in(lines, host):
            return _encoded(_UNAUTHORIZED)
        if method not in ("GET", "HEAD"):
            return _encoded(_NOT_ALLOWED)
        page = self.find(target.partition("?")[0])
        if page is None:
            return _encoded(_NOT_FOUND)
        return _encoded("200 OK", page, has_body=method == "GET")

    def _lets_in(self, lines: list[str], host: str) -> bool:
        scheme, _, text = _header(lines, "authorization").partition(" ")
        try:
            user, colon, password = b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            return False
        return scheme.lower() == "basic" and bool(colon) and self.check(host, user, password)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def _header(lines: list[str], wanted: str) -> str:
    """The value of a header that is there once, else nothing."""
    found = [value.strip() for name, _, value in (line.partition(":") for line in lines) if name.lower() == wanted]
    return found[0] if len(found) == 1 else ""


def _is_local(lines: list[str]) -> bool:
    return is_loopback(_without_port(_header(lines, "host")))


def _without_port(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only lead to this machine."""
    from ipaddress import ip_address

    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _encoded(status: str, page: Page | None = None, *, has_body: bool = True) -> bytes:
    kind, text = page or ("text/plain; charset=utf-8", "")
    body = text.encode()
    extra = 'WWW-Authenticate: Basic realm="ottla", charset="UTF-8"\r\n' if status == _UNAUTHORIZED else ""
    size = len(body)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n{extra}Connection: close\r\n\r\n"
    return head.encode() + (body if has_body else b"")
