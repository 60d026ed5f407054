"""`ottla nodes`: who is there, who serves, and how full the disks are."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import ottla.testing
from ottla.cli import run
from ottla.wire import types
from tests.component.cli.trouble import FAILED_DIRECTORY, sick_cluster
from tests.component.client.fake import FakeCluster

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def sick() -> Iterator[FakeCluster]:
    with sick_cluster() as found:
        yield found


def test_each_node_has_a_line_for_each_directory(sick: FakeCluster, capsys: Capture) -> None:
    assert run(["nodes", "--bootstrap", sick.bootstrap_servers]) == 0
    heading, *rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    port = {node: broker.port for node, broker in sick.brokers.items()}

    assert heading == "NODE ADDRESS RACK STATE DIRECTORY LOGS FREE DISK NOTE"
    assert rows[:3] == [
        f"1 127.0.0.1:{port[1]} - serves /data/disk1 0 B 20.0 GiB 1000.0 GiB -",
        f"2 127.0.0.1:{port[2]} - fenced /data/disk1 0 B 20.0 GiB 1000.0 GiB -",
        f"3 127.0.0.1:{port[3]} - serves {FAILED_DIRECTORY} - - - failed: KAFKA_STORAGE_ERROR",
    ]
    assert rows[3].startswith("4 127.0.0.1:1 - unreachable - - - - ")
    assert rows[4] == "5 - - not listed - - - - 4 partitions assigned to it"


def test_a_node_that_answers_but_does_not_tell_serves(sick: FakeCluster, capsys: Capture) -> None:
    sick.broker(1).on("DescribeLogDirs", types.DescribeLogDirsResponse(error_code=31))
    assert run(["nodes", "--json", "--bootstrap", sick.bootstrap_servers]) == 0
    first = json.loads(capsys.readouterr().out)["rows"][0]

    assert (first["node_id"], first["state"], first["directories"]) == (1, "serves", [])
    assert "CLUSTER_AUTHORIZATION_FAILED" in first["note"]


def test_a_broker_of_ours(capsys: Capture) -> None:
    with ottla.testing.broker() as broker:
        assert run(["nodes", "--json", "--bootstrap", broker.bootstrap_servers]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    (directory,) = row["directories"]

    assert (row["node_id"], row["state"], row["note"]) == (1, "serves", None)
    assert directory["total_bytes"] > directory["usable_bytes"] > directory["size_bytes"]
