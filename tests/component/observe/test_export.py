"""`ottla observe --export-port --notify`: a page for Prometheus, and findings posted to a hook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest

import ottla.testing
from ottla.cli import run
from ottla.client import Client, Producer, ProducerRecord, TopicPartition, topics
from ottla.client.blocking import BlockingClient
from ottla.client.group_offsets import commit
from ottla.client.topics import NewTopic

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    async def fill(client: Client) -> None:
        await topics.create(client, NewTopic("orders", 1))
        await Producer(client).send_all(ProducerRecord("orders", b"x") for _ in range(10))
        await commit(client, "billing", {TopicPartition("orders", 0): 4})

    with ottla.testing.broker() as broker:
        with BlockingClient(broker.bootstrap_servers) as client:
            client.call(fill)
        yield broker.bootstrap_servers


class Exported(NamedTuple):
    page: str
    posted: list[dict[str, Any]]
    said: str


@pytest.fixture(scope="module")
def exported(servers: str) -> Exported:
    """What the command serves, posts and says, as soon as it knows the group's lag and has posted something."""
    posted: SimpleQueue[dict[str, Any]] = SimpleQueue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Hook) as hook:
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{hook.server_port}/findings"
        options = ["--bootstrap", servers, "--every", "200ms", "--export-port", "0", "--notify", url]
        command = [sys.executable, "-m", "ottla", "observe", *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as observer:
            assert observer.stderr is not None
            said = next(line for line in observer.stderr if "metrics at" in line)
            first = posted.get(timeout=TIMEOUT_S)
            page = _page_with_lag(said.split()[-1])
            observer.terminate()
            said += observer.stderr.read()
        hook.shutdown()
    return Exported(page, [first], said)


def _page_with_lag(address: str) -> str:
    until = time.monotonic() + TIMEOUT_S
    while True:
        with urlopen(address, timeout=TIMEOUT_S) as answer:
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            page = str(answer.read().decode())
        if "ottla_group_partition_lag_seconds" in page:
            return page
        assert time.monotonic() < until, page
        time.sleep(0.1)


def test_the_page_has_the_lag_of_the_group(exported: Exported):
    labels = r'\{group="billing",type="classic",topic="orders",partition="0"\}'
    assert re.search(rf"^ottla_group_partition_lag_records{labels} 6$", exported.page, re.MULTILINE)
    assert re.search(rf"^ottla_group_partition_lag_seconds{labels} [0-9.]+$", exported.page, re.MULTILINE)
    assert "ottla_cluster_up 1\n" in exported.page


def test_findings_are_posted(exported: Exported):
    (posted,) = exported.posted
    assert posted["what"] == "opened"
    assert posted["finding"]["rule"] == "single-voter"
    assert posted["cluster"]


def test_nothing_is_written_to_the_cluster(exported: Exported, servers: str):
    with BlockingClient(servers) as client:
        names = {each.name for each in client.call(topics.describe)}
    assert "orders" in names
    assert "ottla.observations" not in names


def test_wrong_options(servers: str, capsys: pytest.CaptureFixture[str]):
    port = servers.rpartition(":")[2]
    assert run(["observe", "--bootstrap", servers, "--export-port", port]) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
    assert run(["observe", "--bootstrap", servers, "--notify", "hook"]) == 2
    assert "--notify 'hook' is not a URL" in capsys.readouterr().err
