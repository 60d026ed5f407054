"""Attacks on listeners that want TLS or a login. All are bounded in number and in time."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from ottla.wire import frames
from ottla.wire.types import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacks import CONNECT_S, dialled

AT_A_TIME = 50
BEGUN_HELLO = bytes.fromhex("16030101400100013c0303")
"""The head of a TLS ClientHello, without the rest."""


def guess(address: tuple[str, int], count: int, *, from_many: bool) -> None:
    """Log in with wrong passwords, from one address of this machine or from a new one each time."""

    def one(number: int) -> None:
        source = f"127.{2 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}" if from_many else "127.0.0.2"
        with suppress(OSError), socket.create_connection(address, CONNECT_S, (source, 0)) as sock:
            _log_in(sock, f"\0user-{number % 100}\0guess-{number}".encode())

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        for _ in threads.map(one, range(count)):
            pass


def send_nonsense(address: tuple[str, int], count: int) -> None:
    """Log in with random bytes, some of them before the mechanism is named."""

    def one(number: int) -> None:
        chance = random.Random(number)
        source = f"127.3.{number // 250 % 250}.{1 + number % 250}"
        with suppress(OSError), socket.create_connection(address, CONNECT_S, (source, 0)) as sock:
            if number % 3:
                _log_in(sock, chance.randbytes(chance.randrange(200)))
            else:
                sock.sendall(chance.randbytes(chance.randrange(1, 60)))
                sock.shutdown(socket.SHUT_WR)
                sock.recv(4096)

    with ThreadPoolExecutor(AT_A_TIME) as threads:
        for _ in threads.map(one, range(count)):
            pass


def _log_in(sock: socket.socket, token: bytes) -> None:
    sock.sendall(frames.write_request(SaslHandshakeRequest("PLAIN"), 1, correlation_id=1, client_id="guesser"))
    if sock.recv(4096):
        sock.sendall(frames.write_request(SaslAuthenticateRequest(token), 2, correlation_id=2, client_id="guesser"))
        sock.recv(4096)


@contextmanager
def half_open_handshakes(address: tuple[str, int], count: int) -> Iterator[None]:
    """TLS handshakes that are begun and not ended."""
    with dialled(address, count) as connections:
        for each in connections:
            each.sendall(BEGUN_HELLO)
        yield
