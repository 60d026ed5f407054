"""Following the traffic of a broker, with the client's own TLS and login."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import pytest

from ottla.client import Client
from ottla.client.inspect_listener import inspect_addresses
from ottla.client.properties import settings_of
from ottla.client.traffic import TrafficRefusedError, follow_traffic, traffic_url
from ottla.testing import broker

NOBODY = "127.0.0.1:1"
SETTINGS = {"ottla.inspect.listeners": "https://127.0.0.1:0", "ottla.inspect.traffic.enable": "true"}


async def first_line(client: Client, url: str) -> object:
    async with aclosing(follow_traffic(client, url)) as lines:
        return await anext(lines)


async def watched(client: Client) -> tuple[str, object]:
    async with client:
        (address,) = await inspect_addresses(client)
        url = traffic_url(address, api="ListGroups")
        return url, await first_line(client, url)


def test_a_stream_with_tls_and_a_login() -> None:
    with broker(security="sasl_ssl", **SETTINGS, **{"ottla.web.security.listener.name": "SASL_SSL"}) as made:
        own = settings_of(made.security.client_properties("alice"))
        url, line = asyncio.run(watched(Client(made.bootstrap_servers, **own)))
        assert isinstance(line, dict)
        assert (line["kind"], line["node"]) == ("status", made.node_id)
        with pytest.raises(TrafficRefusedError, match="it wants a user and a password"):
            asyncio.run(first_line(Client(NOBODY, tls=own["tls"]), url))
        with pytest.raises(OSError, match="certificate verify failed"):
            asyncio.run(first_line(Client(NOBODY), url))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "it is too old to show traffic"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n4 others watch\n", "4 others watch"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>\n", "it is no stream of JSON"),
        (b"220 mail.example ESMTP\r\n", "it is no stream of JSON"),
    ],
)
def test_what_else_may_answer(answer: bytes, why: str) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            await first_line(Client(NOBODY), traffic_url(f"http://127.0.0.1:{port}"))

    with pytest.raises(OSError, match=why):
        asyncio.run(ask())


def test_a_port_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(first_line(Client(NOBODY), traffic_url(f"http://127.0.0.1:{port}")))
