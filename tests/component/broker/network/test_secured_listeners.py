"""Listeners with TLS and SASL, on a real node and with our own client."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ottla.client import cluster, configs
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType
from ottla.client.errors import AuthenticationError, BootstrapError, ClientError, ResponseError
from ottla.client.oauth import OAuthBearer
from ottla.client.properties import settings_of
from ottla.client.tokens import DelegationToken, create_token, describe_tokens, expire_token, renew_token
from ottla.client.users import describe_users
from ottla.security.tls import server_tls
from ottla.testing import Broker, BrokerError, broker
from ottla.testing.certificates import CertificateAuthority
from ottla.testing.ports import PortReservation
from ottla.testing.security import MECHANISMS
from ottla.wire.errors import ErrorCode


@pytest.fixture(scope="module")
def sasl_ssl() -> Iterator[Broker]:
    with broker(security="sasl_ssl") as made:
        yield made


@pytest.fixture(scope="module")
def ssl_broker() -> Iterator[Broker]:
    with broker(security="ssl", **{"ssl.client.auth": "required"}) as made:
        yield made


def connect(made: Broker, properties: dict[str, str], call: Any = cluster.describe) -> Any:
    settings = settings_of(properties) | {"connect_timeout_ms": 5_000, "default_api_timeout_ms": 5_000}
    with BlockingClient(made.bootstrap_servers, **settings) as client:  # type: ignore[arg-type]
        return client.call(call)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_over_tls(sasl_ssl: Broker, mechanism: str):
    assert connect(sasl_ssl, sasl_ssl.security.client_properties(mechanism=mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_wrong_password_and_unknown_user(sasl_ssl: Broker, mechanism: str, user: str):
    properties = sasl_ssl.security.client_properties(user, password="wrong", mechanism=mechanism)
    with pytest.raises(AuthenticationError, match="Authentication failed"):
        connect(sasl_ssl, properties)


def test_a_mechanism_that_is_not_offered(sasl_ssl: Broker):
    properties = sasl_ssl.security.client_properties()
    sasl_ssl_settings = settings_of(properties)
    sasl_ssl_settings["sasl"] = _Other()
    with (
        pytest.raises(AuthenticationError, match="it offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        BlockingClient(sasl_ssl.bootstrap_servers, **sasl_ssl_settings),
    ):
        pass


class _Other:
    mechanism = "GSSAPI"

    def exchange(self) -> Iterator[bytes]:
        yield b""


def test_the_users_of_scram_can_be_described(sasl_ssl: Broker):
    found = connect(sasl_ssl, sasl_ssl.security.client_properties("admin"), describe_users)
    assert found["alice"] == {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 8192}


def test_a_client_certificate_makes_the_principal(ssl_broker: Broker):
    assert connect(ssl_broker, ssl_broker.security.client_properties())


@pytest.mark.parametrize("leave_out", ["keystore", "truststore", "all"])
def test_certificates_that_are_not_trusted(ssl_broker: Broker, leave_out: str):
    properties = ssl_broker.security.client_properties()
    kept = {name: text for name, text in properties.items() if leave_out not in name}
    if leave_out == "all":
        kept = {}
    with pytest.raises(ClientError):
        connect(ssl_broker, kept)


def test_a_certificate_of_another_authority_is_refused(ssl_broker: Broker, tmp_path: Any):
    stranger = CertificateAuthority(tmp_path, "stranger").issue("client")
    properties = ssl_broker.security.client_properties() | {"ssl.keystore.location": str(stranger.pem)}
    with pytest.raises(BootstrapError):
        connect(ssl_broker, properties)


def test_an_expired_client_certificate_is_refused(ssl_broker: Broker):
    issued = ssl_broker.security.authority.issue("expired client", valid_for=timedelta(days=-1))
    properties = ssl_broker.security.client_properties() | {"ssl.keystore.location": str(issued.pem)}
    with pytest.raises(BootstrapError):
        connect(ssl_broker, properties)


def test_users_stay_after_a_restart():
    with broker(security="sasl_plaintext") as made:
        made.restart()
        assert connect(made, made.security.client_properties())


def test_a_certificate_is_replaced_while_the_node_runs(tmp_path: Any):
    """The file is written anew, and the next connection sees what is in it."""
    with broker(security="ssl") as made:
        path = made.security.settings()["ssl.keystore.location"]
        first = served_serial(made)
        made.security.authority.issue("broker")
        made.advance(10_000)
        renewed = served_serial(made)
        assert renewed != first
        for content in ("no certificate", made.security.authority.issue("somebody else").pem.read_text()):
            Path(path).write_text(content)
            made.advance(10_000)
            assert served_serial(made) == renewed, "what cannot be used leaves the old one in force"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ssl.keystore.location": "/nowhere.pem"}, r"/nowhere\.pem does not exist"),
        ({"ssl.keystore.type": "JKS"}, "keytool -importkeystore"),
        ({"ssl.enabled.protocols": "SSLv3"}, "SSLv3"),
        ({"listener.name.sasl_ssl.ssl.client.auth": "REQUIRED"}, r"ssl\.client\.auth is .REQUIRED."),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "Kerberos"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"listener.name.sasl_ssl.plain.sasl.jaas.config": "secret-word"}, "is malformed"),
    ],
)
def test_what_cannot_be_used_is_told_at_the_start(settings: dict[str, str], text: str):
    with pytest.raises(BrokerError, match=text) as error, broker(security="sasl_ssl", **settings):
        pass
    assert "secret-word" not in str(error.value)


def frame(key: int, version: int, body: bytes) -> bytes:
    data = struct.pack(">hhih", key, version, 1, -1) + body
    return struct.pack(">i", len(data)) + data


def answer(sock: socket.socket) -> bytes:
    """The next frame, or nothing at the end."""
    head = sock.recv(4, socket.MSG_WAITALL)
    return sock.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


@pytest.fixture
def raw() -> Iterator[socket.socket]:
    with broker(security="sasl_plaintext") as made, socket.create_connection(("127.0.0.1", made.port), 5) as sock:
        yield sock


HANDSHAKE = b"\x00\x05PLAIN"
LOGIN = b"\0alice\0alice-secret"


def test_an_old_client_logs_in_with_bare_tokens(raw: socket.socket):
    raw.sendall(frame(17, 0, HANDSHAKE))
    assert answer(raw)[4:6] == b"\0\0"
    raw.sendall(struct.pack(">i", len(LOGIN)) + LOGIN)
    assert raw.recv(4, socket.MSG_WAITALL) == bytes(4)
    raw.sendall(frame(18, 0, b""))
    assert answer(raw)[4:6] == b"\0\0"


@pytest.mark.parametrize(
    ("frames", "answers"),
    [
        ([frame(3, 0, bytes(4))], 0),
        ([frame(18, 0, b""), frame(18, 0, b"")], 1),
        ([frame(36, 0, struct.pack(">i", len(LOGIN)) + LOGIN)], 0),
        ([frame(17, 1, HANDSHAKE), frame(18, 0, b"")], 2),
        ([frame(17, 1, HANDSHAKE), frame(17, 1, HANDSHAKE)], 2),
        ([frame(17, 1, b"\x00\x06KERBER")], 1),
        ([struct.pack(">i", 600_000)], 0),
    ],
)
def test_what_comes_out_of_order_ends_the_connection(raw: socket.socket, frames: list[bytes], answers: int):
    for each in frames:
        raw.sendall(each)
    for _ in range(answers):
        assert answer(raw)
    assert answer(raw) == b""


def test_a_second_login_without_a_session_that_ends_is_refused(raw: socket.socket):
    raw.sendall(frame(17, 1, HANDSHAKE))
    answer(raw)
    raw.sendall(frame(36, 0, struct.pack(">i", len(LOGIN)) + LOGIN))
    assert answer(raw)[4:6] == b"\0\0"
    raw.sendall(frame(17, 1, HANDSHAKE))
    assert answer(raw)[4:6] == struct.pack(">h", 34)
    raw.sendall(frame(36, 0, struct.pack(">i", len(LOGIN)) + LOGIN))
    assert answer(raw)[4:6] == struct.pack(">h", 34)


# --- delegation tokens and sessions


@pytest.fixture(scope="module")
def with_tokens() -> Iterator[Broker]:
    settings = {"delegation.token.secret.key": "the key", "connections.max.reauth.ms": "60000"}
    with broker(security="sasl_plaintext", **settings) as made:
        yield made


def token_properties(made: Broker, token: DelegationToken) -> dict[str, str]:
    properties = made.security.client_properties(token.token_id, password=token.password)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace(";", " tokenauth=true;")
    return properties


def test_a_token_is_made_used_renewed_and_ended(with_tokens: Broker):
    alice = settings_of(with_tokens.security.client_properties())
    with BlockingClient(with_tokens.bootstrap_servers, **alice) as client:
        token = client.call(create_token, renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert (token.owner, token.requester) == ("User:alice", "User:alice")
        assert client.call(describe_tokens) == [token]
        for mechanism in MECHANISMS[1:]:
            properties = token_properties(with_tokens, token) | {"sasl.mechanism": mechanism}
            assert connect(with_tokens, properties)
        with pytest.raises(ResponseError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
            connect(with_tokens, token_properties(with_tokens, token), create_token)
        assert client.call(renew_token, token.hmac) <= token.ends_at_ms
        client.call(expire_token, token.hmac)
    with pytest.raises(AuthenticationError):
        connect(with_tokens, token_properties(with_tokens, token))


def test_a_wrong_secret_is_no_token(with_tokens: Broker):
    alice = settings_of(with_tokens.security.client_properties())
    with BlockingClient(with_tokens.bootstrap_servers, **alice) as client:
        token = client.call(create_token)
    with pytest.raises(AuthenticationError):
        connect(with_tokens, token_properties(with_tokens, token._replace(hmac=b"wrong")))


def log_in(sock: socket.socket, login: bytes = LOGIN) -> tuple[int, int]:
    """Handshake and login; gives the error code and the lifetime of the session."""
    sock.sendall(frame(17, 1, HANDSHAKE))
    assert answer(sock)[4:6] == b"\0\0"
    sock.sendall(frame(36, 1, struct.pack(">i", len(login)) + login))
    said = answer(sock)
    (lifetime_ms,) = struct.unpack(">q", said[-8:])
    return struct.unpack(">h", said[4:6])[0], lifetime_ms


def test_a_session_is_renewed_in_band(with_tokens: Broker):
    with socket.create_connection(("127.0.0.1", with_tokens.port), 5) as sock:
        assert log_in(sock) == (0, 60_000)
        with_tokens.advance(50_000)
        code, lifetime_ms = log_in(sock)
        assert (code, lifetime_ms) == (0, 60_000)
        with_tokens.advance(50_000)
        sock.sendall(frame(18, 0, b""))
        assert answer(sock)[4:6] == b"\0\0"
        with_tokens.advance(50_000)
        sock.sendall(frame(18, 0, b""))
        assert answer(sock) == b"", "the session has expired"


def test_a_session_can_be_renewed_slowly(with_tokens: Broker):
    """Between the two requests of it comes the chore that closes connections on which nobody logs in."""
    with socket.create_connection(("127.0.0.1", with_tokens.port), 5) as sock:
        log_in(sock)
        with_tokens.advance(50_000)
        sock.sendall(frame(17, 1, HANDSHAKE))
        assert answer(sock)[4:6] == b"\0\0"
        with_tokens.advance(20_000)
        sock.sendall(frame(36, 1, struct.pack(">i", len(LOGIN)) + LOGIN))
        assert answer(sock)[4:6] == b"\0\0"


def test_a_session_is_not_renewed_as_somebody_else(with_tokens: Broker):
    with socket.create_connection(("127.0.0.1", with_tokens.port), 5) as sock:
        log_in(sock)
        with_tokens.advance(2_000)
        assert log_in(sock, b"\0bob\0bob-secret")[0] == 58
        assert answer(sock) == b""


def test_guessing_shuts_an_address_out_for_a_while():
    with broker(security="sasl_plaintext", **{"connection.failed.authentication.delay.ms": "0"}) as made:

        def guess() -> bytes:
            with suppress(OSError), socket.create_connection(("127.0.0.1", made.port), 5) as sock:
                sock.sendall(frame(17, 1, HANDSHAKE))
                answer(sock)
                sock.sendall(frame(36, 0, struct.pack(">i", 8) + b"\0alice\0x"))
                return answer(sock)
            return b""

        with socket.create_connection(("127.0.0.1", made.port), 5) as known:
            log_in(known)
            answers = [guess() for _ in range(70)]
            assert answers[0]
            assert answers[-1] == b""
            known.sendall(frame(18, 0, b""))
            assert answer(known)[4:6] == b"\0\0", "who is logged in does not notice"
        made.advance(120_000)
        assert connect(made, made.security.client_properties())


# --- settings that change, stores, pages, tokens of issuers


def served_serial(made: Broker) -> int:
    """The serial number of the certificate that the broker shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(made.security.ca_file)
    raw = socket.create_connection(("127.0.0.1", made.port), 5)
    with context.wrap_socket(raw, server_hostname="localhost") as tls:
        found = tls.getpeercert()
        assert found
        return int(str(found["serialNumber"]), 16)


def test_a_key_store_is_changed_by_a_dynamic_setting():
    with broker(security="ssl") as made:
        before = served_serial(made)
        moved = made.security.authority.issue("broker").pem.rename(made.security.authority.directory / "moved.pem")
        alter_broker(made, "listener.name.ssl.ssl.keystore.location", str(moved))
        assert served_serial(made) != before


def alter_broker(made: Broker, name: str, value: str) -> None:
    change = [Change(Operation.SET, name, value)]
    with BlockingClient(made.bootstrap_servers, **settings_of(made.security.client_properties())) as client:
        client.call(configs.alter, Resource(ResourceType.BROKER, "1"), change)


def test_a_certificate_that_cannot_be_used_is_refused():
    with broker(security="ssl") as made:
        before = served_serial(made)
        location = "listener.name.ssl.ssl.keystore.location"
        other = str(made.security.authority.issue("somebody else").pem)
        with pytest.raises(ResponseError, match=r"/nowhere\.pem does not exist") as refused:
            alter_broker(made, location, "/nowhere.pem")
        assert refused.value.code == ErrorCode.INVALID_REQUEST
        with pytest.raises(ResponseError, match=r"set ssl\.allow\.dn\.changes=true"):
            alter_broker(made, location, other)
        assert served_serial(made) == before
        alter_broker(made, "listener.name.ssl.ssl.allow.dn.changes", "true")
        alter_broker(made, location, other)
        assert served_serial(made) != before


def test_a_pkcs12_store(tmp_path: Path):
    authority = CertificateAuthority(tmp_path)
    issued = authority.issue("stored")
    path = tmp_path / "store.p12"
    words = ["-in", issued.certificate, "-inkey", issued.key, "-out", path, "-passout", "pass:s3cret"]
    subprocess.run(["openssl", "pkcs12", "-export", *words], check=True, capture_output=True)
    stores = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": "s3cret",
    }
    with broker(security="ssl", **stores) as made:
        trusting = made.security.client_properties() | {"ssl.truststore.location": str(authority.file)}
        assert connect(made, trusting)
    wrong = stores | {"ssl.keystore.password": "other-word"}
    told = r"cannot be opened with ssl\.keystore\.password"
    with pytest.raises(BrokerError, match=told) as error, broker(security="ssl", **wrong):
        pass
    assert "other-word" not in str(error.value)


def test_pem_as_text(tmp_path: Path):
    issued = CertificateAuthority(tmp_path).issue("text")
    stores = {
        "ssl.keystore.location": "",
        "ssl.keystore.certificate.chain": issued.certificate.read_text(),
        "ssl.keystore.key": issued.key.read_text(),
    }
    assert server_tls(stores | {"ssl.keystore.type": "PEM"}).context


@pytest.mark.parametrize(
    ("user", "password", "code"),
    [("alice", "alice-secret", 200), ("alice", "wrong", 401), ("nobody", "x", 401), ("", "", 401)],
)
def test_the_pages_take_over_a_listener_s_users_and_tls(user: str, password: str, code: int):
    with PortReservationFor() as port:
        settings = {"ottla.metrics.port": port, "ottla.web.security.listener.name": "SASL_SSL"}
        with broker(security="sasl_ssl", **settings) as made:
            context = ssl.create_default_context(cafile=str(made.security.ca_file))
            request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics")
            if user:
                token = b64encode(f"{user}:{password}".encode()).decode()
                request.add_header("Authorization", f"Basic {token}")
            try:
                with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                    found = answer.status
            except urllib.error.HTTPError as error:
                found = error.code
    assert found == code


class PortReservationFor:
    """A port that is free for now."""

    def __enter__(self) -> int:
        reserved = PortReservation()
        reserved.close()
        return reserved.port

    def __exit__(self, *_: object) -> None: ...


def test_signed_tokens_of_an_issuer(tmp_path: Path):
    """Keys come from a web server; those that it gets later are found when a token names them."""
    issuer = Issuer()
    served = {"keys": issuer.keys("one")}
    with served_json(served) as url:
        own = "listener.name.sasl_ssl.oauthbearer"
        settings = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{own}.sasl.oauthbearer.jwks.endpoint.url": url,
            f"{own}.sasl.oauthbearer.expected.audience": "kafka",
        }
        with broker(security="sasl_ssl", **settings) as made:
            tls = settings_of(made.security.client_properties())["tls"]

            def log_in(token: str) -> Any:
                bearer = OAuthBearer(lambda: token)
                limits = {"connect_timeout_ms": 5_000, "default_api_timeout_ms": 5_000}
                with BlockingClient(made.bootstrap_servers, tls=tls, sasl=bearer, **limits) as client:
                    return client.call(cluster.describe)

            assert when_ready(lambda: log_in(issuer.token("one", aud="kafka")))
            with pytest.raises(AuthenticationError, match="invalid_token"):
                log_in(issuer.token("one", aud="other"))
            with pytest.raises(AuthenticationError):
                log_in(issuer.token("two", aud="kafka"))
            served["keys"] = issuer.keys("one", "two")
            made.advance(20_000)
            assert when_ready(lambda: log_in(issuer.token("two", aud="kafka")))
            unsigned = f"{jwt_text({'alg': 'none'})}.{jwt_text({'sub': 'root', 'aud': 'kafka', 'exp': 2**33})}."
            with pytest.raises(AuthenticationError):
                log_in(unsigned)


def when_ready(attempt: Any) -> Any:
    """Keys are fetched in the background."""
    for _ in range(50):
        with suppress(AuthenticationError):
            return attempt()
        time.sleep(0.1)
    return attempt()


@contextmanager
def served_json(content: dict[str, Any]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def jwt_text(value: dict[str, Any] | bytes) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """Signs tokens with any of its keys."""

    def __init__(self) -> None:
        self._keys: dict[str, rsa.RSAPrivateKey] = {}

    def _key(self, name: str) -> rsa.RSAPrivateKey:
        if name not in self._keys:
            self._keys[name] = rsa.generate_private_key(65537, 2048)
        return self._keys[name]

    def keys(self, *names: str) -> list[dict[str, str]]:
        found = []
        for name in names:
            numbers = self._key(name).public_key().public_numbers()
            n, e = (value.to_bytes((value.bit_length() + 7) // 8, "big") for value in (numbers.n, numbers.e))
            found.append({"kty": "RSA", "kid": name, "n": jwt_text(n), "e": jwt_text(e)})
        return found

    def token(self, name: str, **claims: Any) -> str:
        now_s = int(time.time())
        said = {"sub": "alice", "iat": now_s - 10, "exp": now_s + 600, **claims}
        signed = f"{jwt_text({'alg': 'RS256', 'kid': name})}.{jwt_text(said)}"
        return f"{signed}.{jwt_text(self._key(name).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
