"""Clients that are known by their certificates, and whose first requests come in one piece with the end of the TLS
handshake, as TLS 1.3 lets them."""

from __future__ import annotations

import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.config.node_config import ListenerConfig
from ottla.broker.network.listener_security import ListenerSecurity, listener_tls
from ottla.broker.network.request import Answer, CloseCause, Request
from ottla.security.principals import mapping_rules
from ottla.security.tls import client_context, server_tls
from ottla.testing.certificates import CertificateAuthority
from ottla.wire.types import HeartbeatResponse
from tests.component.broker.connection_bench import Bench, heartbeat
from tests.component.security.tls_pair import store

SSL, SASL_SSL = 1, 3


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path)


@pytest.fixture
def asked_by() -> list[str]:
    """The principals of the requests that were handled."""
    return []


def bench_of(authority: CertificateAuthority, asked_by: list[str], rules: str) -> Bench:
    """A connection that wants a certificate."""

    def handle(_node: Any, request: Request) -> Answer:
        asked_by.append(request.principal)
        return HeartbeatResponse()

    stores = store(authority.issue("broker").pem) | store(authority.file, "truststore")
    tls = server_tls(stores | {"ssl.client.auth": "required"})
    return Bench(handle, security=ListenerSecurity(tls=tls.context, user_of=mapping_rules(rules)))


def send_with_the_handshake(bench: Bench, authority: CertificateAuthority, data: bytes) -> None:
    """Shake hands, and send data right behind the last message of it."""
    context = client_context(store(authority.issue("ann").pem) | store(authority.file, "truststore"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    bench.client.sendall(outgoing.read())
    bench.turn()
    incoming.write(bench.client.recv(1 << 16))
    tls.do_handshake()
    tls.write(data)
    bench.client.sendall(outgoing.read())
    bench.turn()


def test_the_first_request_is_already_its_owner_s(authority: CertificateAuthority, asked_by: list[str]):
    bench = bench_of(authority, asked_by, "DEFAULT")
    with closing(bench.client):
        send_with_the_handshake(bench, authority, heartbeat(1) + heartbeat(2))
        assert asked_by == ["User:CN=ann"] * 2
        bench.connection.close("end")


def test_nothing_is_done_for_a_certificate_that_no_rule_fits(authority: CertificateAuthority, asked_by: list[str]):
    bench = bench_of(authority, asked_by, "RULE:CN=bob/bob/")
    with closing(bench.client):
        send_with_the_handshake(bench, authority, heartbeat(1))
        assert bench.connection.is_closed
        assert asked_by == []
        assert bench.owner.closed_connections.counts == {("PLAINTEXT", CloseCause.FAILED_LOGIN): 1}


@pytest.mark.parametrize(
    ("protocol", "setting", "mode"),
    [
        (SSL, "ssl.client.auth", ssl.CERT_REQUIRED),
        (SASL_SSL, "ssl.client.auth", ssl.CERT_NONE),
        (SASL_SSL, "listener.name.clients.ssl.client.auth", ssl.CERT_REQUIRED),
    ],
)
def test_who_logs_in_needs_no_certificate_unless_the_listener_asks_for_it(
    authority: CertificateAuthority, protocol: int, setting: str, mode: ssl.VerifyMode
):
    stores = store(authority.issue("broker").pem) | store(authority.file, "truststore")
    tls = listener_tls(ListenerConfig("CLIENTS", "", 9092, protocol), stores | {setting: "required"}, None)
    assert tls is not None
    assert tls.context.verify_mode is mode
