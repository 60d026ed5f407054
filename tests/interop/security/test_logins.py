"""Each mechanism and each real client, on both brokers: who is let in, and who is not."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client import topics
from ottla.client.blocking import BlockingClient
from tests.interop import process
from tests.interop.credentials import PASSWORD, USER, scram_password
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.programs import JARS, compiled
from tests.interop.security.guarded import ALLOWED_URLS, DOORS, MECHANISMS, SESSION_MS, Guarded, store

SASL_DOORS = ("SASL", "BOTH")
PASSWORDS = {"PLAIN": PASSWORD, "SCRAM-SHA-256": scram_password(), "SCRAM-SHA-512": scram_password()}


# --- Java


class JavaLogins:
    """Runs one program for many logins: a JVM takes longer to start than all of them."""

    def __init__(self, guarded: Guarded, folder: Path, release: str, jars: str | None = None) -> None:
        """`jars` are others than those that come with the clients of a release."""
        self._guarded = guarded
        self._folder = folder
        self._classpath = classpath(jars or JARS[release], compiled(release))
        self._files: list[Path] = []

    def add(self, name: str, properties: dict[str, str]) -> None:
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={text}\n" for key, text in properties.items()))
        self._files.append(path)

    def run(self) -> dict[str, str]:
        options = {
            "org.slf4j.simpleLogger.defaultLogLevel": "off",
            ALLOWED_URLS: ",".join(f"file://{each}" for each in self._guarded.tokens.folder.glob("*.jwt")),
        }
        command = process.java(
            self._classpath, "interop.Login", *map(str, self._files), options=process.QUICK_START, properties=options
        )
        lines = process.run(command, timeout_s=240).splitlines()
        return dict(line.split(" ", 1) for line in lines if " " in line)


@pytest.mark.parametrize("release", JARS)
def test_java(guarded: Guarded, tmp_path: Path, release: str, clients_4_4_jars: Path):
    logins = JavaLogins(guarded, tmp_path, release)
    expected: dict[str, str] = {}

    def add(name: str, outcome: str, properties: dict[str, str]) -> None:
        logins.add(name, properties)
        expected[name] = outcome

    for door in SASL_DOORS:
        for mechanism in MECHANISMS[:3]:
            add(f"{door}-{mechanism}", "ok", guarded.properties(door, mechanism))
    for mechanism in MECHANISMS[:3]:
        wrong = {"wrong": {"password": "wrong"}, "unknown": {"user": "nobody", "password": "x"}}
        for name, login in wrong.items():
            add(f"{mechanism}-{name}", "SaslAuthenticationException", guarded.properties("SASL", mechanism, **login))
    add("tls", "ok", guarded.properties("TLS"))
    add("mutual", "ok", guarded.properties("MUTUAL") | store("keystore", guarded.client.pem))
    stranger = type(guarded.authority)(tmp_path / "stranger", "stranger")
    add("wrong-ca", "SslAuthenticationException", guarded.properties("TLS") | store("truststore", stranger.file))
    add("expired", "SslAuthenticationException", guarded.properties("EXPIRED"))
    add("wrong-host", "SslAuthenticationException", guarded.properties("STRAYED"))
    unmapped = guarded.authority.issue("nobody-7")
    add("unmapped", "TimeoutException", guarded.properties("MUTUAL") | store("keystore", unmapped.pem))
    assert logins.run() == expected


def test_java_with_tokens(guarded: Guarded, tmp_path: Path):
    """The client reads tokens with a library that its own jars do not bring along; a broker's do."""
    logins = JavaLogins(guarded, tmp_path, "4.3.1", APACHE_KAFKA)
    tokens = {
        "right": guarded.tokens.make(),
        "forged": guarded.tokens.make(is_forged=True),
        "for-others": guarded.tokens.make(aud="others"),
        "of-others": guarded.tokens.make(iss="https://other.example"),
        "expired": expired_token(guarded),
    }
    for name, token in tokens.items():
        path = guarded.tokens.file(f"java-{name}", token)
        for door in SASL_DOORS:
            logins.add(f"{door}-{name}", guarded.properties(door, "OAUTHBEARER", token_file=str(path)))
    expected = {name: "ok" if name == "right" else "SaslAuthenticationException" for name in tokens}
    assert logins.run() == {f"{door}-{name}": outcome for name, outcome in expected.items() for door in SASL_DOORS}


def test_java_logs_in_anew_in_band(guarded: Guarded, tmp_path: Path):
    """A producer without retries writes for three sessions, and never loses its connection."""
    logins = JavaLogins(guarded, tmp_path, "4.3.1")
    logins.add(f"forever-{3 * SESSION_MS // 1000}", guarded.properties("BRIEF", "SCRAM-SHA-512"))
    assert set(logins.run().values()) == {"ok"}


def expired_token(guarded: Guarded) -> str:
    return guarded.tokens.make(seconds=-600, iat=int(time.time()) - 1200)


# --- Python clients


def librdkafka(guarded: Guarded, door: str, mechanism: str, password: str, user: str) -> bool:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

    refused: list[int] = []

    def failed(error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            refused.append(error.code())

    settings: dict[str, Any] = {
        "bootstrap.servers": guarded.doors[door],
        "security.protocol": DOORS[door],
        "ssl.ca.location": str(guarded.ca),
        "sasl.mechanism": mechanism,
        "error_cb": failed,
    }
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (password, time.time() + 600)
    else:
        settings |= {"sasl.username": user, "sasl.password": password}
    client = AdminClient(settings)
    deadline = time.monotonic() + 20
    while not refused and time.monotonic() < deadline:
        client.poll(0)
        try:
            client.list_topics(timeout=2)
        except Exception:  # noqa: BLE001  # it waits for the callback
            continue
        return True
    return False


def kafka_python(guarded: Guarded, door: str, mechanism: str, password: str, user: str) -> bool:
    warnings.simplefilter("ignore")  # it reads its own files in an old way, in a thread of its own
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        def token(self) -> str:
            return password

    login = {"sasl_oauth_token_provider": Provider()} if mechanism == "OAUTHBEARER" else {}
    try:
        client = KafkaAdminClient(
            bootstrap_servers=guarded.doors[door],
            security_protocol=DOORS[door],
            ssl_cafile=str(guarded.ca),
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
            bootstrap_timeout_ms=10_000,
            **login,
        )
    except KafkaError:
        client = None
    if client is None:
        _close_tls_sockets()
        return False
    client.list_topics()
    client.close()
    return True


def _close_tls_sockets() -> None:
    """kafka-python leaves those of refused connections open; other tests would be warned of them."""
    for each in gc.get_objects():
        if isinstance(each, ssl.SSLSocket):
            each.close()


def aiokafka(guarded: Guarded, door: str, mechanism: str, password: str, user: str) -> bool:
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.client import AIOKafkaClient
    from aiokafka.errors import KafkaError

    class Provider(AbstractTokenProvider):
        async def token(self) -> str:
            return password

    async def run() -> bool:
        client = AIOKafkaClient(
            bootstrap_servers=guarded.doors[door],
            security_protocol=DOORS[door],
            ssl_context=guarded.trust,
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
            sasl_oauth_token_provider=Provider() if mechanism == "OAUTHBEARER" else None,
        )
        try:
            await client.bootstrap()
            return bool(await client.force_metadata_update())
        except KafkaError:
            return False
        finally:
            await client.close()

    return asyncio.run(run())


CLIENTS = (librdkafka, kafka_python, aiokafka)
Try = Callable[[Guarded, str, str, str, str], bool]


@pytest.fixture
def secrets(guarded: Guarded) -> dict[str, str]:
    return PASSWORDS | {"OAUTHBEARER": guarded.tokens.make()}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("door", SASL_DOORS)
def test_python_clients_log_in(guarded: Guarded, client: Try, mechanism: str, door: str, secrets: dict[str, str]):
    assert client(guarded, door, mechanism, secrets[mechanism], USER)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_python_clients_are_refused(guarded: Guarded, client: Try, mechanism: str):
    if mechanism == "OAUTHBEARER":
        assert not client(guarded, "SASL", mechanism, guarded.tokens.make(is_forged=True), USER)
        assert not client(guarded, "SASL", mechanism, expired_token(guarded), USER)
    else:
        assert not client(guarded, "SASL", mechanism, "wrong", USER)
        assert not client(guarded, "SASL", mechanism, "x", "nobody")


@pytest.mark.parametrize("client", CLIENTS)
def test_python_clients_check_certificates(guarded: Guarded, client: Try, tmp_path: Path):
    """MUTUAL wants a certificate of the client, who has none."""
    stranger = type(guarded.authority)(tmp_path / "stranger", "stranger")
    assert client(guarded, "TLS", "PLAIN", "", "")
    assert not client(guarded._replace(authority=stranger), "TLS", "PLAIN", "", "")
    for door in ("EXPIRED", "STRAYED", "MUTUAL"):
        assert not client(guarded, door, "PLAIN", "", ""), door


def brief_login(guarded: Guarded) -> dict[str, Any]:
    """The settings of Python's own clients for sessions that soon end."""
    return {
        "bootstrap_servers": guarded.doors["BRIEF"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": USER,
        "sasl_plain_password": scram_password(),
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own files in an old way
def test_kafka_python_goes_on_when_its_session_ends(guarded: Guarded):
    from kafka import KafkaAdminClient

    client = KafkaAdminClient(**brief_login(guarded))
    assert_served_for_three_sessions(client.list_topics)
    client.close()


def test_aiokafka_goes_on_when_its_session_ends(guarded: Guarded):
    from aiokafka import AIOKafkaProducer

    async def started() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**brief_login(guarded))
        await producer.start()
        return producer

    with BlockingClient(guarded.plain) as admin:
        admin.call(topics.create, topics.NewTopic("aiokafka-sessions"))
    with asyncio.Runner() as runner:
        producer = runner.run(started())
        assert_served_for_three_sessions(lambda: runner.run(producer.send_and_wait("aiokafka-sessions", b"x")))
        runner.run(producer.stop())


def assert_served_for_three_sessions(ask: Callable[[], object]) -> None:
    """A client that cannot log in anew in band loses its connection; it must get another one by itself."""
    outcomes: list[bool] = []
    deadline = time.monotonic() + 3 * SESSION_MS / 1000
    while time.monotonic() < deadline:
        try:
            ask()
            outcomes.append(True)
        except Exception:  # noqa: BLE001  # the request that met the end of the session
            outcomes.append(False)
        time.sleep(0.1)
    assert outcomes[-1], outcomes
    assert outcomes.count(False) <= len(outcomes) / 5, outcomes


def test_librdkafka_logs_in_anew_in_band(guarded: Guarded):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    errors: list[Any] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": guarded.doors["BRIEF"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER,
        "sasl.password": scram_password(),
        "error_cb": errors.append,
    }
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("anew", 1, 1)])["anew"].result(20)
    producer = Producer(settings | {"retries": 0})
    delivered: list[Any] = []
    deadline = time.monotonic() + 3 * SESSION_MS / 1000
    while time.monotonic() < deadline:
        producer.produce("anew", b"x", on_delivery=lambda error, _: delivered.append(error))
        producer.poll(0.1)
    assert producer.flush(20) == 0
    assert delivered[5:] == [None] * len(delivered[5:])
    assert errors == []


# --- TLS as others do it


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls(guarded: Guarded, version: ssl.TLSVersion):
    import socket

    context = guarded.trust
    context.minimum_version = context.maximum_version = version
    host, port = guarded.tls.split(":")
    with context.wrap_socket(socket.create_connection((host, int(port)), 10), server_hostname="127.0.0.1") as sock:
        assert sock.version() == version.name.replace("_", ".")
