"""Follows the traffic of an ottla broker: lines of its inspect listener, as long as somebody wants them.

TLS and the login are those of the client, as for other pages of the listener (`ottla.client.inspect_listener`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from ottla.client.client import Client
from ottla.client.inspect_listener import TIMEOUT_S, login_headers

__all__ = ["TrafficRefusedError", "follow_traffic", "traffic_url"]

PATH: Final = "/inspect/v1/traffic"
LINE_MAX_BYTES: Final = 1024 * 1024
REFUSAL_MAX_BYTES: Final = 4_096


class TrafficRefusedError(OSError):
    """The broker does not show its traffic; the text says why, and asking again does not help."""


def traffic_url(address: str, *, client_id: str = "", api: str = "", errors_only: bool = False) -> str:
    """The traffic of one broker; `client_id` may have the wild cards * and ?."""
    wanted = {"client": client_id, "api": api, "errors": "1" if errors_only else ""}
    query = urlencode({name: text for name, text in wanted.items() if text})
    return f"{address.rstrip('/')}{PATH}" + (f"?{query}" if query else "")


async def follow_traffic(client: Client, url: str) -> AsyncGenerator[Mapping[str, Any]]:
    """Frames and status lines, until the broker ends the stream. OSError if it cannot be read."""
    parts = urlsplit(url)
    tls = (client.settings.tls or ssl.create_default_context()) if parts.scheme == "https" else None
    async with asyncio.timeout(TIMEOUT_S):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=tls, limit=LINE_MAX_BYTES)
    try:
        headers = {"Host": parts.netloc, "Connection": "close", **login_headers(client.settings, url)}
        lines = [f"GET {parts.path}?{parts.query} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        async with asyncio.timeout(TIMEOUT_S):
            await _read_head(reader)
        while line := await _read_line(reader):
            yield json.loads(line)
    except (ValueError, EOFError) as error:
        raise OSError(f"it is no stream of JSON: {error}") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """A broker that lives says something each second."""
    async with asyncio.timeout(TIMEOUT_S):
        return await reader.readline()


async def _read_head(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    _, status, *_ = head.decode("latin-1").split(" ", 2)
    if status == str(HTTPStatus.OK.value):
        return
    if status == str(HTTPStatus.UNAUTHORIZED.value):
        raise TrafficRefusedError("it wants a user and a password, which a login with PLAIN or SCRAM has")
    if status == str(HTTPStatus.NOT_FOUND.value):
        raise TrafficRefusedError("it is too old to show traffic")
    why = (await reader.read(REFUSAL_MAX_BYTES)).decode(errors="replace").strip()
    raise TrafficRefusedError(why or f"it answers {status}")
