"""A quorum of three real nodes, as its users see it: commands, health, the metadata log over the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.cli import run
from ottla.client.blocking import BlockingClient
from ottla.spark.records.quorum import Quorum
from tests.component.broker.three_nodes import NODES, ThreeNodes, three_nodes

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    with three_nodes(tmp_path_factory.mktemp("nodes")) as running:
        yield running


def command(nodes: ThreeNodes, capsys: Capture, *words: str) -> Any:
    assert run([*words, "--json", "--timeout", "60s", "--bootstrap", nodes.bootstrap]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_node_shows_the_same_quorum(nodes: ThreeNodes, capsys: Capture):
    for number in NODES:
        words = ["quorum", "status", "--json", "--timeout", "60s", "--bootstrap", f"127.0.0.1:{nodes.ports[number]}"]
        assert run(words) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["leader_id"] == nodes.leader_id
        assert [each["node_id"] for each in shown["rows"]] == list(NODES)
        assert (shown["majority"], shown["healthy_voters"]) == (2, list(NODES))


def test_the_rules_of_health_find_nothing(nodes: ThreeNodes, capsys: Capture):
    shown = command(nodes, capsys, "health")
    assert shown["rows"] == []


def test_the_metadata_log_is_read_over_the_network(nodes: ThreeNodes, capsys: Capture):
    assert run(["topics", "create", "orders", "--timeout", "60s", "--bootstrap", nodes.bootstrap]) == 0
    capsys.readouterr()
    with BlockingClient(nodes.bootstrap) as client:
        quorum = Quorum(lambda: client, stall_timeout_ms=60_000)
        leader = quorum.leader()
        assert (leader.node_id, quorum.log_start()) == (nodes.leader_id, 0)
        read = [columns.batches.last_offset for columns in quorum.columns(0, leader.high_watermark)]
    assert read[-1][-1] == leader.high_watermark - 1
