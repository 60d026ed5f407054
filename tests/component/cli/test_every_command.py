"""All commands alike: the same options, the same exit codes for the same mistakes, JSON of one form, narrow terminals.

A new command is found by itself. What it needs to be called is in `ARGUMENTS`.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ottla.cli import run
from ottla.cli.lazy import load
from ottla.cli.table import COMMANDS
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.live import Capture, live_node

NOWHERE = "127.0.0.1:1"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TOPIC, GROUP, SHARE_GROUP = "orders", "billing", "workers"
ARGUMENTS: dict[str, list[str]] = {
    "topics create": ["made"],
    "topics delete": ["made", "--yes"],
    "topics alter": [TOPIC, "retention.ms=86400000"],
    "topics grow": [TOPIC, "4"],
    "topics produce": [TOPIC, "value"],
    "topics consume": [TOPIC],
    "topics copy": [TOPIC, "copied", "--create"],
    "topics offsets": [TOPIC],
    "topics delete-records": [TOPIC, "--before", "0", "--yes"],
    "topics reassign run": ["plan.json", "--yes"],
    "topics reassign verify": ["plan.json"],
    "topics reassign cancel": ["--yes"],
    "topics transactions abort": [TOPIC, "--partition", "0", "--start-offset", "0", "--yes"],
    "load": [TOPIC, "--records", "1"],
    "cluster replace": ["--to", "ottla", "--stop", "false", "--start", "false", "--dry-run"],
    "groups offsets": [GROUP],
    "groups reset": [GROUP, "--all-topics", "--to-earliest", "--dry-run"],
    "groups delete": ["gone", "--yes"],
    "groups delete-offsets": [GROUP, "--topic", TOPIC, "--yes"],
    "share inflight": [SHARE_GROUP],
    "share offsets": [SHARE_GROUP],
    "share reset": [SHARE_GROUP, "--all-topics", "--to-earliest", "--dry-run"],
    "share watch": [SHARE_GROUP, "--count", "1"],
    "streams describe": ["app"],
    "streams tasks": ["app"],
    "streams watch": ["app", "--count", "1"],
    "streams topology": ["app"],
    "configs list": ["topic"],
    "configs get": ["topic", TOPIC, "retention.ms"],
    "configs set": ["topic", TOPIC, "retention.ms=86400000"],
    "configs unset": ["topic", TOPIC, "retention.ms"],
    "quorum features upgrade": ["share.version=1", "--yes"],
    "quorum add-voter": ["2", "--listener", "CONTROLLER://127.0.0.1:1", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
    "quorum remove-voter": ["2", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--yes"],
    "acls add": ["--principal", "ana", "--operation", "read", "--topic", TOPIC],
    "acls remove": ["--topic", TOPIC, "--yes"],
    "users set": ["ana", "--password-file", "-"],
    "users delete": ["ana", "--yes"],
    "tokens renew": ["AAAA"],
    "tokens expire": ["AAAA"],
    "observe": ["--once"],
    "health": ["--for", "100ms"],
    "messages": ["ShareFetch"],
}
"""What a command needs; those that are not here need nothing."""

LINES = {"topics consume", "decode", "proxy"}
"""They print one JSON object for each record or message."""
DOCUMENTS = {"pipeline run", "pipeline report", "topics reassign plan"}
"""Their JSON is a document: a report, or a plan in the form of Kafka's tool."""
TESTED_ELSEWHERE = {
    "streams describe", "streams tasks", "streams watch", "topics reassign verify", "tokens create", "tokens list",
    "cluster status", "acls list",
}  # fmt: skip
"""They need a streams group, a plan, TLS, or a local cluster."""
WAITING = {"observe", "health", "console"}
"""They wait for a cluster that is down."""
READING = [
    "topics list", "topics describe", "topics offsets", "groups list", "groups describe", "groups offsets",
    "share list", "share describe", "share offsets", "share inflight", "configs list", "nodes", "quorum describe",
    "quorum voters", "quorum features", "users list", "doctor",
]  # fmt: skip


def leaves(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    for name, each in command.commands.items():
        yield from leaves((*words, name), each)
    if command.params:  # it is a command, too
        yield " ".join(words), command


EVERY = dict(leaf for name, entry in COMMANDS.items() for leaf in leaves((name,), load(entry)))


def has(command: click.Command, parameter: str) -> bool:
    return any(each.name == parameter for each in command.params)


TO_CLUSTERS = [name for name, each in EVERY.items() if has(each, "timeout")]
WITH_JSON = [name for name, each in EVERY.items() if has(each, "as_json")]


def line(name: str, *more: str) -> list[str]:
    return [*name.split(), *ARGUMENTS.get(name, []), *more]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def bootstrap(running: RunningNode, tmp_path_factory: pytest.TempPathFactory) -> str:
    password = tmp_path_factory.mktemp("secret") / "password"
    password.write_text("secret")
    advertised = running.node.advertised["PLAINTEXT"]
    address = f"{advertised.host}:{advertised.port}"
    for words in (
        ["topics", "create", TOPIC, "--partitions", "3"],
        ["topics", "produce", TOPIC, "a", "b", "c"],
        ["groups", "reset", GROUP, "--topic", TOPIC, "--to-earliest", "--create", "--yes"],
        ["share", "reset", SHARE_GROUP, "--topic", TOPIC, "--to-earliest", "--create", "--yes"],
        ["users", "set", "bea", "--password-file", str(password)],
    ):
        assert run([*words, "--bootstrap", address]) == 0
    return address


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("secret"))
    (tmp_path / "plan.json").write_text(
        json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [1]}]})
    )
    return tmp_path


@pytest.mark.parametrize("name", EVERY)
def test_the_options_of_all_commands(name: str):
    names = {opt for parameter in EVERY[name].params for opt in parameter.opts}
    assert {"-q", "--quiet", "-v", "--verbose"} <= names


@pytest.mark.parametrize("name", TO_CLUSTERS)
def test_the_options_of_commands_for_clusters(name: str):
    names = {opt for parameter in EVERY[name].params for opt in parameter.opts}
    assert {"--bootstrap", "--bootstrap-server", "--command-config", "--profile", "--timeout"} <= names
    assert not {"--force", "--execute", "--validate-only", "--plan", "--no-prompt"} & names


# --- the same mistakes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_an_option_that_is_unknown(name: str, capsys: Capture):
    assert run([*name.split(), "--no-such-option"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--no-such-option" in err


@pytest.mark.parametrize("name", sorted(set(TO_CLUSTERS) - WAITING))
def test_a_cluster_that_cannot_be_reached(name: str, capsys: Capture):
    assert run(line(name, "--bootstrap", NOWHERE, "--timeout", "300ms")) == 3
    assert f"no broker at {NOWHERE}" in capsys.readouterr().err


@pytest.mark.parametrize("name", TO_CLUSTERS)
def test_properties_that_do_not_exist(name: str, capsys: Capture):
    assert run(line(name, "--command-config", "nowhere.properties")) == 2
    assert "nowhere.properties" in capsys.readouterr().err


@pytest.mark.parametrize("name", TO_CLUSTERS)
def test_a_profile_that_does_not_exist(name: str, capsys: Capture):
    assert run(line(name, "--profile", "nowhere")) == 2
    assert "there is no profile 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["topics", "describe", "nowhere"], 1),
        (["topics", "delete", "nowhere", "--yes"], 1),
        (["topics", "alter", "nowhere", "retention.ms=1"], 1),
        (["topics", "grow", "nowhere", "3"], 1),
        (["topics", "produce", "nowhere", "x"], 1),
        (["topics", "consume", "nowhere"], 1),
        (["topics", "copy", "nowhere", TOPIC], 1),
        (["topics", "offsets", "nowhere"], 1),
        (["topics", "delete-records", "nowhere", "--before", "0", "--yes"], 1),
        (["topics", "transactions", "list", "nowhere"], 1),
        (["load", "nowhere", "--records", "1"], 1),
        (["configs", "get", "topic", "nowhere", "retention.ms"], 1),
        (["configs", "set", "topic", "nowhere", "retention.ms=1"], 1),
        (["groups", "describe", "nowhere"], 1),
        (["groups", "offsets", "nowhere"], 1),
        (["groups", "reset", "nowhere", "--all-topics", "--to-latest", "--yes"], 1),
        (["groups", "delete", "nowhere", "--yes"], 1),
        (["share", "describe", "nowhere"], 1),
        (["share", "offsets", "nowhere"], 1),
        (["share", "inflight", "nowhere"], 1),
        (["streams", "describe", "nowhere"], 1),
        (["streams", "tasks", "nowhere"], 1),
        (["users", "delete", "nobody", "--yes"], 1),
        (["configs", "get", "topic", TOPIC, "retention.mss"], 2),
        (["configs", "set", "topic", TOPIC, "retention.mss=1"], 2),
        (["configs", "set", "group", "g", "share.record.lock.ms=1"], 2),
        (["topics", "create", "other", "--config", "retention.mss=1"], 1),
        (["explain", "retention.mss"], 2),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_does_not_exist(bootstrap: str, words: list[str], code: int, capsys: Capture):
    capsys.readouterr()
    at = [] if words[0] == "explain" else ["--bootstrap", bootstrap]
    assert run([*words, *at]) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ottla: ")


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--ephemeral", "--port", "{port}"],
        ["console", "--bootstrap", "127.0.0.1:{port}", "--port", "{port}"],
        ["observe", "--bootstrap", "127.0.0.1:{port}", "--export-port", "{port}"],
        ["proxy", "--to", NOWHERE, "--listen", "127.0.0.1:{port}"],
    ],
    ids=lambda words: words[0],
)
def test_a_port_that_is_taken(bootstrap: str, words: list[str]):
    """As programs: they would run an event loop beside that of the node."""
    port = bootstrap.rpartition(":")[2]
    command = [sys.executable, "-m", "ottla", *(word.format(port=port) for word in words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stderr
    assert port in ended.stderr


# --- what is printed --------------------------------------------------------------------------------------------------


def keys_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from keys_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from keys_in(each)


@pytest.mark.parametrize("name", sorted(set(WITH_JSON) - LINES - DOCUMENTS - TESTED_ELSEWHERE))
def test_json_is_one_object_with_rows(name: str, bootstrap: str, capsys: Capture):
    capsys.readouterr()
    at = ["--bootstrap", bootstrap] if name in TO_CLUSTERS else []
    code = run(line(name, "--json", *at))
    out, err = capsys.readouterr()
    assert code == 0, err
    shown = json.loads(out)
    assert isinstance(shown["rows"], list)
    settings = {"evidence"}  # facts of findings, by the names that rules give them
    assert [key for key in keys_in(shown) if not SNAKE.fullmatch(key) and key not in settings] == []


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_of_any_width(
    name: str, width: int, bootstrap: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    at = ["--bootstrap", bootstrap] if name in TO_CLUSTERS else []
    assert run(["--color", *line(name, *at)]) == 0
    out = ESCAPE.sub("", capsys.readouterr().out)
    assert [text for text in out.splitlines() if len(text.rstrip()) > width and " " in text.strip()] == []


@pytest.mark.parametrize("name", READING)
def test_a_pipe_gets_plain_text(name: str, bootstrap: str, capsys: Capture):
    capsys.readouterr()
    at = ["--bootstrap", bootstrap] if name in TO_CLUSTERS else []
    assert run(line(name, "-q", *at)) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert err == ""


def test_verbose_shows_the_requests(bootstrap: str, capsys: Capture):
    capsys.readouterr()
    assert run(["topics", "list", "-v", "--bootstrap", bootstrap]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"ottla\.client\.requests Metadata v\d+ from 127.0.0.1:\d+.*: \d+ B in [\d.]+ ms", err)
    assert "Metadata" not in out
