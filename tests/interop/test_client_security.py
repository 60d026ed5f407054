"""ottla's client and TLS, PLAIN and SCRAM of Apache Kafka: who is let in, and what those are told who are not."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.cli import run as command
from ottla.client import Client, Plain, Producer, Scram, fetch, topics
from ottla.client.errors import AuthenticationError, BootstrapError, ClientError
from ottla.client.offsets import EARLIEST, LATEST
from ottla.wire import types
from tests.interop.apache import ApacheKafka, free_ports
from tests.interop.credentials import PASSWORD, PLAIN_LINE, SCRAM_LINE, USER, scram_password

SESSION_MS = 2_000
TIME_LIMIT_S = 60


class Guarded(NamedTuple):
    """A broker with four doors."""

    kafka: ApacheKafka
    sasl: str
    tls: str
    both: str
    brief: str
    """SASL whose sessions last for two seconds."""
    ca: Path

    @property
    def plain(self) -> str:
        return self.kafka.bootstrap_servers

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))


@pytest.fixture(scope="module")
def guarded(apache_jars: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    credentials = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD.replace(',', '')}]" for bits in (256, 512)]
    added = [word for each in credentials for word in ("--add-scram", each)]
    kafka = ApacheKafka(tmp_path_factory.mktemp("guarded"), format_arguments=("--standalone", *added))
    doors = dict(zip(("SASL", "TLS", "BOTH", "BRIEF"), free_ports(4), strict=True))
    opened = "".join(f",{name}://127.0.0.1:{port}" for name, port in doors.items())
    listeners = f"PLAINTEXT://{kafka.bootstrap_servers},CONTROLLER://{kafka.controller_servers}{opened}"
    kafka.settings |= {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL,BRIEF:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "listener.name.brief.connections.max.reauth.ms": str(SESSION_MS),
    }
    for name in ("sasl", "both", "brief"):
        kafka.settings |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"listener.name.{name}.plain.sasl.jaas.config": PLAIN_LINE,
            f"listener.name.{name}.scram-sha-256.sasl.jaas.config": SCRAM_LINE,
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config": SCRAM_LINE,
        }
    with kafka:
        addresses = [f"127.0.0.1:{port}" for port in doors.values()]
        yield Guarded(kafka, *addresses, certificates / "ca.pem")


LOGINS = {
    "PLAIN": Plain(USER, PASSWORD),
    "SCRAM-SHA-256": Scram("SCRAM-SHA-256", USER, scram_password()),
    "SCRAM-SHA-512": Scram("SCRAM-SHA-512", USER, scram_password()),
}


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_S):
            await body()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(bounded())


async def use(address: str, **settings: Any) -> None:
    """Write a record and read it again."""
    async with Client(address, **settings) as client:
        await topics.try_create(client, topics.NewTopic("guarded"))
        placed = await Producer(client).send("guarded", address.encode())
        assert placed.offset is not None
        found = [record async for record in fetch(client, {("guarded", 0): placed.offset}, until=LATEST)]
        assert found[0].value == address.encode()


def refusal(address: str, **settings: Any) -> ClientError:
    async def attempt() -> ClientError:
        with pytest.raises(ClientError) as caught:
            async with Client(address, **settings):
                pass
        return caught.value

    return asyncio.run(attempt())


@pytest.mark.parametrize("mechanism", LOGINS)
def test_each_mechanism_lets_in(guarded: Guarded, mechanism: str):
    run(lambda: use(guarded.sasl, sasl=LOGINS[mechanism]))


@pytest.mark.parametrize("mechanism", LOGINS)
def test_each_mechanism_lets_in_through_tls(guarded: Guarded, mechanism: str):
    run(lambda: use(guarded.both, sasl=LOGINS[mechanism], tls=guarded.trust))


def test_tls_alone(guarded: Guarded):
    run(lambda: use(guarded.tls, tls=guarded.trust))


@pytest.mark.parametrize(
    "login", [Plain(USER, "wrong"), Scram("SCRAM-SHA-512", USER, "wrong"), Scram("SCRAM-SHA-256", "nobody", "x")]
)
def test_a_wrong_password_is_told(guarded: Guarded, login: Any):
    error = refusal(guarded.sasl, sasl=login)
    assert isinstance(error, AuthenticationError)
    assert f"authentication at {guarded.sasl} failed: Authentication failed" in str(error)


def test_a_mechanism_that_is_not_offered_is_told(guarded: Guarded):
    class Other:
        mechanism = "OAUTHBEARER"

        def exchange(self) -> Any:
            yield b""

    error = refusal(guarded.sasl, sasl=Other())
    assert "does not offer OAUTHBEARER; it offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in str(error)


def test_the_wrong_door_is_told(guarded: Guarded):
    assert "this listener does not ask for SASL" in str(refusal(guarded.plain, sasl=LOGINS["PLAIN"]))
    assert "does so to clients that do not log in" in str(refusal(guarded.sasl))
    assert "TLS" in str(refusal(guarded.tls))
    assert "does it speak TLS?" in str(refusal(guarded.plain, tls=guarded.trust, connect_timeout_ms=5_000))


def test_a_broker_that_is_not_trusted_is_left(guarded: Guarded):
    error = refusal(guarded.tls, tls=ssl.create_default_context())
    assert isinstance(error, BootstrapError)
    assert "its certificate is refused" in str(error)
    other_name = f"localhost:{guarded.tls.rpartition(':')[2]}"
    assert "its certificate is refused: Hostname mismatch" in str(refusal(other_name, tls=guarded.trust))


def test_a_session_is_renewed_before_it_ends(guarded: Guarded):
    """The broker closes connections whose session has ended as soon as they ask for something."""

    async def body() -> None:
        async with Client(guarded.brief, sasl=LOGINS["SCRAM-SHA-512"]) as client:
            await topics.try_create(client, topics.NewTopic("guarded"))
            for number in range(6):
                await asyncio.sleep(SESSION_MS / 4000)
                answer = await client.send(types.DescribeClusterRequest(), retry=False)
                assert answer.error_code == 0, number

    run(body)


def test_the_command_line_takes_a_client_s_properties(
    guarded: Guarded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=PLAIN\n"
        f"sasl.jaas.config={PLAIN_LINE}\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={guarded.ca}\n"
    )
    to = ["--bootstrap-server", guarded.both, "--command-config", str(path)]
    assert command(["topics", "create", "by-command", *to]) == 0
    assert command(["topics", "list", *to]) == 0
    assert "by-command" in capsys.readouterr().out
    path.write_text(path.read_text().replace(USER, "mallory"))
    assert command(["topics", "list", *to]) == 4
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)
    assert "authentication at" in err


def test_what_was_written_through_one_door_is_read_through_another(guarded: Guarded):
    async def body() -> None:
        await use(guarded.both, sasl=LOGINS["SCRAM-SHA-256"], tls=guarded.trust)
        async with Client(guarded.tls, tls=guarded.trust) as client:
            found = [record.value async for record in fetch(client, {("guarded", 0): EARLIEST}, until=LATEST)]
            assert guarded.both.encode() in found

    run(body)
