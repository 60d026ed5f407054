"""A minimal HTTP server: one request for a page or for a stream of lines, then the connection is closed."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from base64 import b64decode
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ottla.broker.network.addresses import address_text

__all__ = ["Find", "Page", "Source", "Stream", "Visit", "WebServer", "is_loopback"]

_REQUEST_SECONDS: Final = 10
CONNECTIONS_MAX: Final = 64
TAKE_EVERY_S: Final = 0.05
"""How often a stream is asked for what is new."""
_STALLED_SECONDS: Final = 30
"""A stream whose reader has taken nothing for so long ends."""
_OK: Final = "200 OK"
_UNAUTHORIZED: Final = "401 Unauthorized"
_FORBIDDEN: Final = "403 Forbidden"
_NOT_FOUND: Final = "404 Not Found"
_NOT_ALLOWED: Final = "405 Method Not Allowed"


class Visit(NamedTuple):
    """Somebody who asks for a page."""

    path: str
    query: str = ""
    host: str = ""
    user: str | None = None
    """Who has logged in; None where nobody must."""


class Page(NamedTuple):
    content_type: str
    text: str
    status: str = _OK


class Source(Protocol):
    """What a stream sends."""

    def take(self) -> bytes | None:
        """What is there to be sent now; None if it has ended. It is asked again once that is sent."""

    def close(self) -> None: ...


class Stream(NamedTuple):
    """A page without an end: what its source gives, until the reader goes away."""

    content_type: str
    begin: Callable[[], Source]


Find = Callable[[Visit], Page | Stream | None]
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
        find: Find = lambda visit: None,
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
        self._streams: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; gives the port. Raises OSError."""
        self._server = await asyncio.start_server(self._answer, host or None, port, ssl=self._tls)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections >= CONNECTIONS_MAX:
            writer.close()
            return
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
                host = address_text(writer.get_extra_info("peername")[0])
                answer = self._response(head.decode("latin-1"), host)
                writer.write(_stream_head(answer) if isinstance(answer, Stream) else answer)
                await writer.drain()
            if isinstance(answer, Stream):
                sending = asyncio.create_task(_send(answer.begin(), reader, writer))
                self._streams.add(sending)
                sending.add_done_callback(self._streams.discard)
                await asyncio.wait((sending,))

    def _response(self, head: str, host: str) -> bytes | Stream:
        first, *lines = head.split("\r\n")
        method, target, *_ = [*first.split(" "), "", ""]
        if self._is_local and not _is_local(lines):
            return _encoded(_FORBIDDEN)
        user = self._user(lines, host) if self._has_login else None
        if self._has_login and user is None:
            return _encoded(_UNAUTHORIZED)
        if method not in ("GET", "HEAD"):
            return _encoded(_NOT_ALLOWED)
        path, _, query = target.partition("?")
        found = self.find(Visit(path, query, host, user))
        if found is None:
            return _encoded(_NOT_FOUND)
        if isinstance(found, Stream):
            return found if method == "GET" else _stream_head(found)
        return _encoded(found.status, found, has_body=method == "GET")

    def _user(self, lines: list[str], host: str) -> str | None:
        """The user whose password a request has brought; None if it has brought none that is right."""
        scheme, _, text = _header(lines, "authorization").partition(" ")
        try:
            user, colon, password = b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            return None
        is_let_in = scheme.lower() == "basic" and bool(colon) and self.check(host, user, password)
        return user if is_let_in else None

    def close(self) -> None:
        for each in self._streams:
            each.cancel()
        if self._server is not None:
            self._server.close()


async def _send(source: Source, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send what a source gives until it ends or the reader goes away."""
    try:
        with contextlib.suppress(OSError, TimeoutError):
            while not reader.at_eof() and (data := source.take()) is not None:
                writer.write(data)
                async with asyncio.timeout(_STALLED_SECONDS):
                    await writer.drain()
                await asyncio.sleep(TAKE_EVERY_S)
    finally:
        source.close()
        writer.close()


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


def _stream_head(stream: Stream) -> bytes:
    return f"HTTP/1.1 {_OK}\r\nContent-Type: {stream.content_type}\r\nConnection: close\r\n\r\n".encode()


def _encoded(status: str, page: Page | None = None, *, has_body: bool = True) -> bytes:
    kind, text, _ = page or Page("text/plain; charset=utf-8", "")
    body = text.encode()
    extra = 'WWW-Authenticate: Basic realm="ottla", charset="UTF-8"\r\n' if status == _UNAUTHORIZED else ""
    size = len(body)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n{extra}Connection: close\r\n\r\n"
    return head.encode() + (body if has_body else b"")
