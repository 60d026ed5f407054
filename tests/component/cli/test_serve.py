"""`ottla serve` as a process: the line it prints, how it stops, and how it complains."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from ottla.cli.node_process import CannotServe, run
from ottla.wire.types import ApiVersionsRequest, CreateTopicsRequest
from tests.component.broker.raw_client import RawClient

READY = re.compile(
    r"ottla ready PLAINTEXT://127\.0\.0\.1:(?P<port>\d+) CONTROLLER://127\.0\.0\.1:\d+ node=(?P<node>\d+) "
    r"cluster=(?P<cluster>\S{22}) data=(?P<data>\S+)( metrics=(?P<metrics>\d+))?"
    r"( inspect=(?P<inspect>\d+))? ms=\d+\n"
)


@contextmanager
def serving(
    *arguments: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    """The process and what its first line says."""
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**variables, **(environment or {})}
    )
    try:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None, process.communicate(timeout=20)[1]
        yield process, ready
    finally:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """Stop a process; gives what it wrote to standard error."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    return errors


def ask(ready: re.Match[str], *questions: tuple[object, int]) -> list[Any]:
    """The answers to requests in these versions."""
    with closing(RawClient("127.0.0.1", int(ready["port"]))) as client:
        return [client.ask(*question) for question in questions]


def creation(partitions: int, replicas: int = 1) -> tuple[CreateTopicsRequest, int]:
    return CreateTopicsRequest((CreateTopicsRequest.CreatableTopic("orders", partitions, replicas),), 5_000), 7


def test_it_says_when_it_is_ready_and_stops_cleanly(tmp_path: Path):
    with serving("--port", "0", "--data", str(tmp_path), "--node-id", "7") as (process, ready):
        assert (ready["node"], ready["data"]) == ("7", str(tmp_path))
        assert ask(ready, creation(2))[0].topics[0].error_code == 0
        assert (tmp_path / ".lock").exists()
        assert stop(process) == ""
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / ".lock").exists()


def test_an_interrupt_is_a_clean_stop_too(tmp_path: Path):
    with serving("--port", "0", "--data", str(tmp_path)) as (process, _):
        stop(process, signal.SIGINT)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("arguments", [(), ("--ephemeral",)])
def test_without_a_directory_data_go_with_the_process(arguments: tuple[str, ...]):
    with serving("--port", "0", *arguments) as (process, ready):
        path = Path(ready["data"])
        assert (path / "meta.properties").exists()
        stop(process)
    assert not path.exists()


def test_settings_come_from_file_environment_and_options(tmp_path: Path):
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=2\ndefault.replication.factor=1\nnum.io.threads=3\n")
    environment = {"OTTLA_NUM_PARTITIONS": "3", "OTTLA_MIN_INSYNC_REPLICAS": "2"}
    arguments = ("--port", "0", "--config", str(config), "--set", "num.partitions=4", "--ephemeral")
    with serving(*arguments, environment=environment) as (process, ready):
        answer = ask(ready, creation(-1, -1))[0].topics[0]
        assert answer.num_partitions == 4
        assert {each.name: each.value for each in answer.configs}["min.insync.replicas"] == "2"
        errors = stop(process)
    assert "accepted, but without effect in ottla: num.io.threads" in errors


def test_requests_are_shown_to_who_asks_for_it():
    with serving("--port", "0", "-v") as (process, ready):
        ask(ready, (ApiVersionsRequest("tests", "1.0"), 4), creation(0))
        errors = stop(process)
    assert re.search(r"INFO ottla.requests 127.0.0.1:\d+ test ApiVersions v4 -> ok \d+ B \d+ ms", errors)
    assert re.search(r"test CreateTopics v7 orders -> INVALID_PARTITIONS \d+ B \d+ ms", errors)


def test_metrics_are_on_their_own_page():
    with serving("--port", "0", "--metrics-port", "0") as (process, ready):
        ask(ready, creation(3))
        with urlopen(f"http://127.0.0.1:{ready['metrics']}/metrics", timeout=10) as page:
            text = page.read().decode()
        stop(process)
    assert "\nkafka_server_replicamanager_leadercount 3\n" in text
    assert '\nkafka_network_requestmetrics_requests_total{request="CreateTopics",version="7"} 1\n' in text
    assert "\n# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n" in text


def test_what_is_in_flight_is_shown_to_this_machine():
    with serving("--port", "0", "--inspect-port", "0") as (process, ready):
        with urlopen(f"http://127.0.0.1:{ready['inspect']}/inspect/v1/share/g", timeout=10) as page:
            assert page.headers["Content-Type"] == "application/json"
            assert json.loads(page.read()) == {"group": "g", "node": 1, "partitions": []}
        stop(process)


def complaint(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a start that fails writes: one line, and one with advice."""
    command = [sys.executable, "-m", "ottla", "serve", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env={**os.environ, **(environment or {})}
    )
    assert (ended.returncode in (1, 2), ended.stdout) == (True, "")
    assert ended.stderr.count("\n") <= 2, ended.stderr
    return ended.stderr


def test_complaints_are_one_line_and_name_the_thing(tmp_path: Path):
    assert complaint("--ephemeral", "--set", "num.partition=3") == (
        "ottla: unknown setting 'num.partition'\n"
        "  → did you mean num.partitions? 'ottla explain config --list' lists all\n"
    )
    (tmp_path / "server.properties").write_text("# ours\n\nnum.partitions=3\nlog.retention.mss = 5\n")
    assert (
        "ottla: server.properties line 4: unknown setting 'log.retention.mss'\n  → did you mean log.ret"
        in complaint("--ephemeral", "--config", str(tmp_path / "server.properties"))
    )
    assert "unknown setting 'num.partitons'" in complaint("--ephemeral", environment={"OTTLA_NUM_PARTITONS": "3"})
    assert "--data and --ephemeral exclude each other" in complaint("--data", str(tmp_path), "--ephemeral")
    assert "--port and the setting listeners exclude each other" in complaint(
        "--port", "9", "--set", "listeners=PLAINTEXT://:1"
    )
    (tmp_path / "other").write_text("")
    assert "neither empty nor a log directory" in complaint("--port", "0", "--data", str(tmp_path))


def test_a_port_in_use_is_named(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match=f"cannot listen on 127.0.0.1:{port}"):
            run([{"log.dirs": str(tmp_path)}], port=port, is_ephemeral=False, verbosity=0, out=sys.stdout)


def test_a_port_that_is_taken_is_named_with_its_holder(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = complaint("--ephemeral", "--port", str(port))
    by = f" (by pid {os.getpid()}, " if sys.platform == "linux" else ""
    assert said.startswith(f"ottla: port {port} is taken{by}")
    assert said.endswith("\n  → --port 0 picks a free one\n")


def test_a_second_process_on_the_same_directory_is_refused(tmp_path: Path):
    with serving("--port", "0", "--data", str(tmp_path)) as (process, _):
        assert f"{tmp_path} is in use by another process" in complaint("--port", "0", "--data", str(tmp_path))
        stop(process)
