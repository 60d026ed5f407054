"""ottla's own client, TLS and logins: who is let in, and what those are told who are not."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run as command
from ottla.client import Client, Plain, Producer, Scram, fetch, topics
from ottla.client.errors import AuthenticationError, BootstrapError, ClientError
from ottla.client.offsets import EARLIEST, LATEST
from ottla.wire import types
from tests.interop.credentials import PASSWORD, PLAIN_LINE, USER, scram_password
from tests.interop.security.guarded import SESSION_MS, Guarded

TIME_LIMIT_S = 60


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
        mechanism = "GSSAPI"

        def exchange(self) -> Any:
            yield b""

    error = refusal(guarded.sasl, sasl=Other())
    assert "does not offer GSSAPI; it offers OAUTHBEARER, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in str(error)


def test_the_wrong_door_is_told(guarded: Guarded):
    assert "this listener does not use SASL" in str(refusal(guarded.plain, sasl=LOGINS["PLAIN"]))
    assert "a SASL listener does that to clients without SASL" in str(refusal(guarded.sasl))
    assert "TLS" in str(refusal(guarded.tls))
    assert "does it use TLS?" in str(refusal(guarded.plain, tls=guarded.trust, connect_timeout_ms=5_000))


def test_a_broker_that_is_not_trusted_is_left(guarded: Guarded):
    error = refusal(guarded.tls, tls=ssl.create_default_context())
    assert isinstance(error, BootstrapError)
    assert "its certificate was rejected" in str(error)
    other_name = f"localhost:{guarded.tls.rpartition(':')[2]}"
    assert "its certificate was rejected: Hostname mismatch" in str(refusal(other_name, tls=guarded.trust))


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
