"""SASL on a connection: what is said when, and how refusals read."""

from typing import Any

import pytest

from ottla.client.address import Peer, parse_address
from ottla.client.clock import monotonic_s
from ottla.client.connection import Connection
from ottla.client.errors import AuthenticationError, BootstrapError, UnsupportedVersionError
from ottla.client.handshake import open_connection
from ottla.client.sasl import Plain, Scram
from ottla.client.settings import ClientSettings
from ottla.wire import frames, types
from tests.component.client.fake import FakeBroker, FakeCluster
from tests.unit.client.running import run
from tests.unit.client.sasl_server import Server

ACCEPTED = types.SaslHandshakeResponse(mechanisms=("PLAIN", "SCRAM-SHA-256"))
PLAIN = Plain("alice", "pencil")


async def log_in(broker: FakeBroker, sasl: Any = PLAIN) -> Connection:
    return await open_connection(Peer(parse_address(broker.address)), ClientSettings.of(sasl=sasl))


def test_plain():
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.on("SaslHandshake", ACCEPTED)
            broker.on("SaslAuthenticate", types.SaslAuthenticateResponse())
            connection = await log_in(broker)
            said = [(each.name, each.version) for each in broker.handshakes]
            assert said == [("ApiVersionsRequest", 4), ("SaslHandshakeRequest", 1), ("SaslAuthenticateRequest", 2)]
            assert broker.handshakes[2].body.auth_bytes == b"\0alice\0pencil"
            assert connection.session_ends_at_s is None
            await connection.close()

    run(body)


def test_scram():
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker, server = cluster.broker(), Server("sha256", "pencil")

            def authenticate(request: frames.Request) -> types.SaslAuthenticateResponse:
                token = request.body.auth_bytes
                answer = server.first(token) if token.startswith(b"n,,") else server.final(token)
                assert answer is not None
                return types.SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=60_000)

            broker.on("SaslHandshake", ACCEPTED)
            broker.on("SaslAuthenticate", authenticate)
            connection = await log_in(broker, Scram("SCRAM-SHA-256", "alice", "pencil"))
            assert broker.handshakes[1].body.mechanism == "SCRAM-SHA-256"
            assert connection.session_ends_at_s is not None
            assert 40 < connection.session_ends_at_s - monotonic_s() < 60
            await connection.close()

    run(body)


def test_a_broker_that_does_not_know_the_password_is_left():
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker, server = cluster.broker(), Server("sha256", "another password")

            def authenticate(request: frames.Request) -> types.SaslAuthenticateResponse:
                token = request.body.auth_bytes
                answer = server.first(token) if token.startswith(b"n,,") else b"v=AAAA"
                return types.SaslAuthenticateResponse(auth_bytes=answer)

            broker.on("SaslHandshake", ACCEPTED)
            broker.on("SaslAuthenticate", authenticate)
            with pytest.raises(AuthenticationError, match=r"authentication at 127\S+ failed: .*did not prove"):
                await log_in(broker, Scram("SCRAM-SHA-256", "alice", "pencil"))

    run(body)


@pytest.mark.parametrize(
    ("handshake", "authenticate", "reason"),
    [
        (types.SaslHandshakeResponse(33, ("OAUTHBEARER",)), None, "does not offer PLAIN; it offers OAUTHBEARER"),
        (types.SaslHandshakeResponse(34), None, "does not use SASL"),
        (ACCEPTED, types.SaslAuthenticateResponse(58, "Invalid username or password"), "Invalid username or password"),
        (ACCEPTED, types.SaslAuthenticateResponse(58, None), "SASL_AUTHENTICATION_FAILED"),
    ],
)
def test_a_refusal_says_why(handshake: Any, authenticate: Any, reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.on("SaslHandshake", handshake)
            broker.on("SaslAuthenticate", authenticate)
            with pytest.raises(AuthenticationError, match=reason):
                await log_in(broker)

    run(body)


def test_a_broker_without_frames_for_sasl_is_too_old():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["SaslHandshake"] = (0, 0)
            with pytest.raises(UnsupportedVersionError, match=r"SaslHandshake v1 cannot be sent to .*: it supports v0"):
                await log_in(cluster.broker())

    run(body)


def test_a_client_that_is_refused_tries_no_other_server():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            for broker in cluster.brokers.values():
                broker.on("SaslHandshake", ACCEPTED)
                broker.on("SaslAuthenticate", types.SaslAuthenticateResponse(58, "no"))
            client = cluster.client(sasl=PLAIN)
            client.bootstrap_servers = tuple(parse_address(each.address) for each in cluster.brokers.values())
            with pytest.raises(AuthenticationError):
                async with client:
                    pass
            assert cluster.broker(2).connections == 0

    run(body)


def test_a_session_that_ends_is_begun_anew():
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.on("SaslHandshake", ACCEPTED)
            broker.on(
                "SaslAuthenticate",
                types.SaslAuthenticateResponse(session_lifetime_ms=1),
                types.SaslAuthenticateResponse(),
            )
            broker.on("Heartbeat", types.HeartbeatResponse())
            async with cluster.client(sasl=PLAIN) as client:
                await client.send(types.HeartbeatRequest(group_id="g"))
                await client.send(types.HeartbeatRequest(group_id="g"))
            assert broker.connections == 2

    run(body)


def test_a_server_that_wants_no_login_is_no_crash():
    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().on("SaslHandshake", types.SaslHandshakeResponse(1))
            with pytest.raises(BootstrapError, match=r"SaslHandshake at .*OFFSET_OUT_OF_RANGE"):
                async with cluster.client(sasl=PLAIN):
                    pass

    run(body)
