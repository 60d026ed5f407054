"""TLS over a socket pair: everything arrives, in bounded pieces, whatever the other end does."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from ottla.security.tls import client_context, server_tls
from ottla.security.tls_socket import PIECE_BYTES, TlsSocket
from ottla.testing.certificates import CertificateAuthority
from tests.component.security.tls_pair import client, server, shake_hands, store


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.setblocking(False)
    yield left, right
    left.close()
    right.close()


def read_all(tls: TlsSocket, count: int) -> bytes:
    """Read as a loop would: wait until the socket tells of something."""
    import select

    buffer, found = memoryview(bytearray(PIECE_BYTES)), bytearray()
    while len(found) < count:
        select.select([tls.fileno()], [tls.fileno()] if tls.has_unsent else [], [], 10)
        try:
            tls.flush()
            size = tls.recv_into(buffer)
        except BlockingIOError:
            continue
        assert size, "it has ended"
        found += buffer[:size]
    return bytes(found)


def test_large_data_in_both_directions(pair: tuple[socket.socket, socket.socket], authority: CertificateAuthority):
    data = bytes(range(256)) * 20_000
    context = client_context(store(authority.file, "truststore"))
    echoed: list[bytes] = []

    def echo() -> None:
        with context.wrap_socket(pair[1], server_hostname="localhost") as sock:
            sock.sendall(data)
            found = bytearray()
            while len(found) < len(data):
                found += sock.recv(1 << 20)
            echoed.append(bytes(found))

    thread = threading.Thread(target=echo)
    thread.start()
    tls = server(pair[0], authority)
    assert read_all(tls, len(data)) == data
    at = 0
    while at < len(data) or tls.has_unsent:
        with suppress(BlockingIOError):
            if at < len(data):
                sent = tls.send(memoryview(data)[at:])
                assert sent <= PIECE_BYTES
                at += sent
            else:
                tls.flush()
    thread.join(10)
    assert echoed == [data]


def test_nothing_more_is_encrypted_before_the_last_piece_has_left(
    pair: tuple[socket.socket, socket.socket], authority: CertificateAuthority
):
    pair[1].setblocking(False)
    tls = server(pair[0], authority)
    shake_hands(client(pair[1], authority), tls)
    while not tls.has_unsent:
        assert tls.send(bytes(PIECE_BYTES)) == PIECE_BYTES
    with pytest.raises(BlockingIOError):
        tls.send(bytes(PIECE_BYTES))


def test_what_is_no_tls_is_an_ssl_error(pair: tuple[socket.socket, socket.socket], authority: CertificateAuthority):
    pair[1].sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        server(pair[0], authority).recv_into(memoryview(bytearray(PIECE_BYTES)))


def test_a_probe_that_says_nothing_is_no_error(
    pair: tuple[socket.socket, socket.socket], authority: CertificateAuthority
):
    pair[1].close()
    assert server(pair[0], authority).recv_into(memoryview(bytearray(PIECE_BYTES))) == 0


@pytest.mark.parametrize("valid_for", [timedelta(days=-1), timedelta(days=1)])
def test_an_expired_certificate_is_refused_by_the_client(
    valid_for: timedelta, pair: tuple[socket.socket, socket.socket], authority: CertificateAuthority
):
    pair[1].setblocking(False)
    issued = authority.issue("short", valid_for=valid_for)
    tls = TlsSocket(pair[0], server_tls(store(issued.pem)).context)
    reader = client(pair[1], authority)
    reader.send(b"hello")
    buffer = memoryview(bytearray(PIECE_BYTES))
    with pytest.raises(BlockingIOError):
        tls.recv_into(buffer)
    if valid_for < timedelta():
        with pytest.raises(ssl.SSLCertVerificationError):
            reader.recv_into(buffer)
    else:
        with pytest.raises(BlockingIOError):
            reader.recv_into(buffer)
        assert tls.recv_into(buffer) == len(b"hello")
