"""Reading the web pages of brokers with the client's own TLS and login."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ottla.client import Client
from ottla.client.inspect_listener import access_url, inspect_addresses, reachable, read_json, read_page
from ottla.client.properties import settings_of
from ottla.client.sasl import Plain, Sasl, Scram
from ottla.testing import broker
from ottla.testing.ports import PortReservation

NOBODY = "127.0.0.1:1"


async def nodes_by_address(client: Client) -> dict[str, int]:
    async with client:
        return {each: (await read_json(client, access_url(each)))["node"] for each in await inspect_addresses(client)}


def test_a_page_with_tls_and_a_login() -> None:
    reserved = PortReservation()
    reserved.release()
    address = f"https://127.0.0.1:{reserved.port}"
    settings = {"ottla.inspect.listeners": address, "ottla.web.security.listener.name": "SASL_SSL"}
    with broker(security="sasl_ssl", **settings) as made:
        own = settings_of(made.security.client_properties("alice"))
        assert asyncio.run(nodes_by_address(Client(made.bootstrap_servers, **own))) == {address: made.node_id}
        with pytest.raises(OSError, match="it requires a user and a password"):
            asyncio.run(read_json(Client(NOBODY, tls=own["tls"]), access_url(address)))
        with pytest.raises(OSError, match="certificate verify failed"):
            asyncio.run(read_json(Client(NOBODY), access_url(address)))
    reserved.close()


def test_a_port_that_the_broker_has_chosen_is_found() -> None:
    with broker(**{"ottla.inspect.listeners": "http://127.0.0.1:0"}) as made:
        (address,) = asyncio.run(nodes_by_address(Client(made.bootstrap_servers)))
    assert not address.endswith(":0")


@contextmanager
def served(location: str = "") -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """A page, which points elsewhere if a location is given; its URL, and the headers of those who ask for it."""
    asked: list[Mapping[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(dict(self.headers.items()))
            self.send_response(302 if location else 200)
            self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page", asked
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.parametrize(
    ("sasl", "is_sent"),
    [(Plain("ann", "secret"), True), (Scram("SCRAM-SHA-256", "ann", "secret"), False), (None, False)],
)
def test_a_password_goes_in_the_clear_only_if_the_login_sends_it_so_anyway(sasl: Sasl | None, is_sent: bool) -> None:
    with served() as (url, asked):
        asyncio.run(read_page(Client(NOBODY, sasl=sasl), url))
    assert ["Authorization" in headers for headers in asked] == [is_sent]


def test_a_page_cannot_send_the_password_elsewhere() -> None:
    with served() as (elsewhere, asked), served(elsewhere) as (url, _):
        with pytest.raises(OSError, match="302 Found"):
            asyncio.run(read_page(Client(NOBODY, sasl=Plain("ann", "secret")), url))
        assert asked == []


@pytest.mark.parametrize("page", ["http://127.0.0.1:port/metrics", "http://[::1/metrics"])
def test_a_page_without_a_proper_address_cannot_be_read(page: str) -> None:
    with pytest.raises(OSError, match=re.escape(page)):
        asyncio.run(read_page(Client(NOBODY), page))


@pytest.mark.parametrize(
    ("listens_on", "address"),
    [
        ("https://0.0.0.0:9405", "https://broker-1:9405"),
        ("https://[::]:9405", "https://broker-1:9405"),
        ("http://127.0.0.1:9405", "http://127.0.0.1:9405"),
    ],
)
def test_a_listener_on_all_addresses_is_reached_by_the_name_of_its_broker(listens_on: str, address: str) -> None:
    assert reachable(listens_on, "broker-1") == address


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The URL of a server that says this to whoever asks."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(65_536)
                accepted.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/page"
        thread.join(10)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x15\x03\x03\x00\x02\x02\x46",  # TLS
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\ncut off",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 100_000,
    ],
    ids=["TLS", "cut off", "long line"],
)
def test_what_is_no_page_is_an_error_like_any_other(answer: bytes) -> None:
    with answering(answer) as url, pytest.raises(OSError, match="it is no page"):
        asyncio.run(read_page(Client(NOBODY), url))
