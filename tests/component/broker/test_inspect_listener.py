"""The inspect listener: what is in flight, for eyes on this machine only."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.clock import ManualClock
from ottla.broker.node import Node, StartError
from ottla.broker.telemetry.inspect_listener import inspect_address
from ottla.core.metadata.config_defs import ConfigError
from ottla.wire import uuid_text
from tests.component.broker.raw_client import RunningNode, running_node
from tests.component.broker.share.share_members import Member, initialize, produce

LOCAL = "http://127.0.0.1:0"
LOCK_MS = 30_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), ManualClock(), ottla_inspect_listeners=LOCAL) as running:
        yield running


def ask(port: int | None, line: str, *headers: str) -> tuple[str, str]:
    """Status and body."""
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), 20) as line_out:
        line_out.sendall("\r\n".join([line, *(headers or (f"Host: 127.0.0.1:{port}",)), "", ""]).encode())
        answer = b"".join(iter(lambda: line_out.recv(65_536), b"")).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split("\r\n")[0].removeprefix("HTTP/1.1 "), body


def look(running: RunningNode, group: str) -> Any:
    status, body = ask(running.node.inspect_port, f"GET /inspect/v1/share/{quote(group, safe='')} HTTP/1.1")
    assert status == "200 OK"
    return json.loads(body)


def test_ranges_with_state_owner_and_time_left(running: RunningNode) -> None:
    client = running.client
    topic = client.topic()
    produce(client, topic, 10)
    initialize(client, "g", topic, state_epoch=3)
    first, second = (Member(client, "g", name, topic) for name in ("m1", "m2"))
    assert first.take(max_records=6, share_acquire_mode=1) == [(0, 5, 1)]
    running.advance(1_000)
    assert second.take(max_records=2, share_acquire_mode=1) == [(6, 7, 1)]
    assert first.acknowledge((1, 2, [1])) == 0
    seen = look(running, "g")
    assert (seen["group"], seen["node"]) == ("g", 1)
    (partition,) = seen["partitions"]
    ranges = partition.pop("ranges")
    assert partition == {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "partition": 0,
        "phase": "active",
        "start_offset": 0,
        "end_offset": 9,
        "next_fetch_offset": 8,
        "in_flight": 10,
        "max_record_locks": 2000,
        "delivery_count_limit": 5,
        "delivery_complete_count": 2,
        "state_epoch": 3,
        "leader_epoch": 0,
    }
    names = ("first_offset", "last_offset", "state", "delivery_count", "member_id", "lock_timeout_ms", "next_state")
    assert [tuple(each[name] for name in names) for each in ranges] == [
        (0, 0, "ACQUIRED", 1, "m1", LOCK_MS - 1_000, None),
        (1, 2, "ACKNOWLEDGED", 1, None, None, None),
        (3, 5, "ACQUIRED", 1, "m1", LOCK_MS - 1_000, None),
        (6, 7, "ACQUIRED", 1, "m2", LOCK_MS, None),
        (8, 9, "AVAILABLE", 0, None, None, None),
    ]


@pytest.mark.parametrize("group", ["nobody", "a/b c", "ä:ö%"])
def test_a_group_of_which_nothing_is_in_flight(running: RunningNode, group: str) -> None:
    assert look(running, group) == {"group": group, "node": 1, "partitions": []}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("HEAD /inspect/v1/share/g HTTP/1.1", "200 OK"),
        ("GET /inspect/v1/share/ HTTP/1.1", "404 Not Found"),
        ("GET /inspect/v1/share/a/b HTTP/1.1", "404 Not Found"),
        ("GET /metrics HTTP/1.1", "404 Not Found"),
        ("POST /inspect/v1/share/g HTTP/1.1", "405 Method Not Allowed"),
    ],
)
def test_what_else_is_asked(running: RunningNode, line: str, status: str) -> None:
    assert ask(running.node.inspect_port, line) == (status, "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Host: localhost"], "200 OK"),
        (["host: [::1]:80"], "200 OK"),
        (["Host: evil.example"], "403 Forbidden"),
        (["Host: 127.0.0.1.evil.example:80"], "403 Forbidden"),
        (["Host: localhost", "Host: evil.example"], "403 Forbidden"),
        (["Accept: */*"], "403 Forbidden"),
    ],
)
def test_nobody_gets_here_by_another_name(running: RunningNode, headers: list[str], status: str) -> None:
    assert ask(running.node.inspect_port, "HEAD /inspect/v1/share/g HTTP/1.1", *headers)[0] == status


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:9093", ("127.0.0.1", 9093)),
        ("http://localhost:0/", ("localhost", 0)),
        ("http://[::1]:9093", ("::1", 9093)),
    ],
)
def test_addresses_of_this_machine(text: str, address: tuple[str, int]) -> None:
    assert inspect_address(text) == address


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("127.0.0.1:9093", "is not an address"),
        ("https://127.0.0.1:9093", "is not an address"),
        ("http://127.0.0.1", "is not an address"),
        ("http://127.0.0.1:99999", "is not an address"),
        ("http://0.0.0.0:9093", "not an address of this machine alone"),
        ("http://example.org:9093", "not an address of this machine alone"),
        ("http://[::]:9093", "not an address of this machine alone"),
    ],
)
def test_addresses_that_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        inspect_address(text)


@pytest.mark.parametrize(("text", "has_login"), [("http://127.0.0.1:9093", True), ("https://0.0.0.0:9093", False)])
def test_with_tls_it_is_https_and_without_a_login_for_this_machine_alone(text: str, has_login: bool) -> None:
    with pytest.raises(ConfigError):
        inspect_address(text, has_tls=True, has_login=has_login)
    assert inspect_address("https://0.0.0.0:9093", has_tls=True, has_login=True) == ("0.0.0.0", 9093)


def test_it_is_off_unless_somebody_asks_for_it(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        assert running.node.inspect_port is None


def test_a_port_in_use_costs_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = {"ottla.inspect.listeners": f"http://127.0.0.1:{port}", "log.dirs": str(tmp_path)}
        local = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}
        with pytest.raises(StartError, match=f"the inspect listener cannot listen on 127.0.0.1:{port}"):
            asyncio.run(Node.start(NodeConfig(local, given)))
    assert list(tmp_path.iterdir()) == []
