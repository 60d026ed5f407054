"""Floods of logins: others are served, memory is bounded, and garbage ends a connection and nothing else."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from ottla.client import cluster
from ottla.client.blocking import BlockingClient
from ottla.client.properties import settings_of
from ottla.testing import Broker, broker

HALF_OPEN = 300
GARBAGE = 400
CLIENT_HELLO = bytes.fromhex("16030100")


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with broker(security="sasl_ssl", **{"connection.failed.authentication.delay.ms": "0"}) as made:
        yield made


def test_half_open_handshakes_cost_little_and_are_closed(secured: Broker):
    login = settings_of(secured.security.client_properties())
    with ExitStack() as stack, BlockingClient(secured.bootstrap_servers, **login) as client:
        half = []
        for _ in range(HALF_OPEN):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", secured.port), 10))
            sock.sendall(CLIENT_HELLO)
            half.append(sock)
        assert client.call(cluster.describe).brokers
        secured.advance(50_000)
        for sock in half:
            assert _is_closed(sock), "it had half a minute"
        assert client.call(cluster.describe).brokers


def _is_closed(sock: socket.socket) -> bool:
    """Waits for it. A connection whose handshake had no turn yet is reset, because nobody has read what it sent."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("security", ["sasl_plaintext", "ssl"])
def test_garbage_ends_its_connection_and_nothing_else(security: str):
    chance = random.Random(7)
    with broker(security=security, **{"connection.failed.authentication.delay.ms": "0"}) as made:
        for number in range(GARBAGE):
            with suppress(OSError), socket.create_connection(("127.0.0.1", made.port), 10) as sock:
                sock.settimeout(5)
                if number % 3:
                    sock.sendall(struct.pack(">ihhih", 19, 17, 1, number, -1) + b"\x00\x05PLAIN")
                    sock.sendall(struct.pack(">ihhihi", 50, 36, number % 3, number, -1, chance.randrange(-5, 60)))
                sock.sendall(chance.randbytes(chance.randrange(1, 60)))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(4096):
                    pass
        made.advance(120_000)
        with BlockingClient(made.bootstrap_servers, **settings_of(made.security.client_properties())) as client:
            assert client.call(cluster.describe).brokers
