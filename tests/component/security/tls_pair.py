"""Both ends of a TLS connection, in one process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from ottla.security.tls import client_context, server_tls
from ottla.security.tls_socket import PIECE_BYTES, TlsSocket
from ottla.testing.certificates import CertificateAuthority


def store(path: Path, kind: str = "keystore") -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(path)}


def server(sock: Any, authority: CertificateAuthority, **settings: str) -> TlsSocket:
    return TlsSocket(sock, server_tls({**store(authority.issue("broker").pem), **settings}).context)


def client(sock: Any, authority: CertificateAuthority) -> TlsSocket:
    return TlsSocket(sock, client_context(store(authority.file, "truststore")), "localhost")


def shake_hands(one: TlsSocket, other: TlsSocket) -> None:
    """Let a client and a server, whose sockets do not block, become ready."""
    one.send(b"hello")
    buffer = memoryview(bytearray(PIECE_BYTES))
    for _ in range(5):
        for end in (other, one):
            with suppress(BlockingIOError):
                end.recv_into(buffer)
    assert one.is_ready
    assert other.is_ready
