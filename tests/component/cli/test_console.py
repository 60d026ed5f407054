"""`ottla console`, and the consoles that come with a node and with a cluster."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ottla.testing
from ottla.cli import run
from ottla.testing.ports import PortReservation

Capture = pytest.CaptureFixture[str]
TIMEOUT_S = 60


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of `ottla`, and the address of its console."""
    process = subprocess.Popen([sys.executable, "-m", "ottla", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next((line for line in process.stdout if line.startswith("console=")), "")
        yield process, address.strip().removeprefix("console=")
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def healthy(address: str) -> bytes:
    with urllib.request.urlopen(f"{address.partition('/?')[0]}/healthz", timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def nodes_with_traffic(address: str) -> list[tuple[int, str | None]]:
    """The nodes whose traffic the console can show, as soon as it knows the cluster; the address has the token."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(address, timeout=TIMEOUT_S).close()
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with opener.open(f"{address.partition('?')[0]}live.json", timeout=TIMEOUT_S) as answer:
            nodes = json.load(answer)["data"]["nodes"]
        if nodes or time.monotonic() > deadline:
            return [(each["node"], each["why_not"]) for each in nodes]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_ends_when_it_is_told(number: signal.Signals):
    with ottla.testing.broker() as broker:
        arguments = ("console", "--bootstrap", broker.bootstrap_servers, "--port", "0")
        with started(*arguments) as (process, address):
            assert address.startswith("http://127.0.0.1:")
            assert "/?token=" in address
            assert healthy(address) == b"ok\n"
            process.send_signal(number)
            assert process.wait(TIMEOUT_S) == 0


def test_it_comes_with_a_node_and_ends_with_it(tmp_path: Path):
    arguments = ("serve", "--port", "0", "--data", str(tmp_path), "--console-port", "0")
    with started(*arguments) as (process, address):
        assert healthy(address) == b"ok\n"
        assert nodes_with_traffic(address) == [(1, None)]
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    with pytest.raises(OSError, match="refused"):
        healthy(address)


def test_it_comes_with_a_cluster_and_ends_with_it():
    with started("cluster", "up", "--nodes", "1", "--console-port", "0") as (process, address):
        assert healthy(address) == b"ok\n"
        assert nodes_with_traffic(address) == [(1, None)]
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    with pytest.raises(OSError, match="refused"):
        healthy(address)


def refused(capture: Capture, *words: str) -> str:
    assert run(words) != 0
    return capture.readouterr().err


def test_mistakes_are_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    assert "give --certificate and --key" in refused(capsys, "console", "--host", "0.0.0.0")
    assert "security.protocol=SASL_SSL" in refused(capsys, "console", "--login")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another with --port" in refused(capsys, "console", "--port", str(port))
    monkeypatch.setattr("ottla.cli.console_process.find_spec", lambda name: None)
    assert "pip install 'ottla[console]'" in refused(capsys, "console")
    assert "pip install 'ottla[console]'" in refused(capsys, "serve", "--console-port", "0")
    assert "pip install 'ottla[console]'" in refused(capsys, "cluster", "up", "--console")


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI", ""])
def test_users_need_a_mechanism_that_takes_their_password(capsys: Capture, tmp_path: Path, mechanism: str):
    """Else everybody would come in as the client that the file is for."""
    config = tmp_path / "client.properties"
    own = "sasl.oauthbearer.client.credentials.client"
    config.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:1/\n{own}.id=console\n{own}.secret=s3cret\n"
    )
    said = refused(capsys, "console", "--login", "--command-config", str(config), "--port", "0")
    assert f"sasl.mechanism={mechanism} does not take" in said
    assert "s3cret" not in said


def test_a_node_without_an_open_listener_has_none(capsys: Capture, tmp_path: Path):
    reserved = PortReservation()
    listeners = f"SASL_PLAINTEXT://127.0.0.1:{reserved.port}"
    settings = [
        "--set", f"listeners={listeners},CONTROLLER://127.0.0.1:0",
        "--set", "sasl.enabled.mechanisms=PLAIN", "--set", "inter.broker.listener.name=SASL_PLAINTEXT",
    ]  # fmt: skip
    said = refused(capsys, "serve", "--data", str(tmp_path), "--console-port", "0", *settings)
    reserved.close()
    assert "needs a PLAINTEXT listener" in said
