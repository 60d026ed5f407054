"""`ottla storage check` on the directories of three nodes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla import testing
from ottla.cli import run

NODES = (1, 2, 3)
RECORDS = 20


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that were stopped, with records on all of them."""
    directory = tmp_path_factory.mktemp("cluster")
    with testing.cluster(data_dir=directory) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
        for number in range(RECORDS):
            producer.produce("orders", str(number))
        assert producer.flush(30) == 0
        cluster.wait_in_sync()
        cluster.stop()
    return directory


@pytest.fixture
def nodes(stopped: Path, tmp_path: Path) -> list[Path]:
    for number in NODES:
        shutil.copytree(stopped / f"node-{number}" / "data", tmp_path / f"node-{number}")
    return [tmp_path / f"node-{number}" for number in NODES]


def check(*directories: Path) -> int:
    return run(["storage", "check", *map(str, directories)])


def test_three_stopped_nodes_can_be_started(nodes: list[Path], capsys: pytest.CaptureFixture[str]):
    before = {path: path.stat().st_mtime_ns for each in nodes for path in each.rglob("*")}
    assert check(*nodes) == 0, capsys.readouterr().out
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "3 directories: Apache Kafka 4.3 and ottla can start on them"
    assert not [line for line in said if line.startswith("problem")]
    assert {path: path.stat().st_mtime_ns for each in nodes for path in each.rglob("*")} == before


def _other_cluster(nodes: list[Path]) -> list[Path]:
    path = nodes[1] / "meta.properties"
    lines = path.read_text().splitlines()
    path.write_text("\n".join("cluster.id=AAAAAAAAAAAAAAAAAAAAAA" if "cluster" in line else line for line in lines))
    return nodes


def _copy(nodes: list[Path]) -> list[Path]:
    return [*nodes, shutil.copytree(nodes[0], nodes[0].with_name("copy"))]


def _too_few(nodes: list[Path]) -> list[Path]:
    return [nodes[0], _second_directory(nodes[0])]


def _second_directory(node: Path) -> Path:
    """A log directory of the same node that has no metadata and no partitions."""
    other = node.with_name("second")
    other.mkdir()
    text = (node / "meta.properties").read_text()
    lines = ["directory.id=BBBBBBBBBBBBBBBBBBBBBB" if "directory.id" in line else line for line in text.splitlines()]
    (other / "meta.properties").write_text("\n".join(lines) + "\n")
    return other


def _lose_end(nodes: list[Path]) -> list[Path]:
    """As a power cut may: the records are not there, although they were acknowledged."""
    for each in nodes:
        (each / ".kafka_cleanshutdown").unlink()
        (each / "orders-0" / f"{0:020}.log").write_bytes(b"")
    return nodes


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (_other_cluster, "the directories belong to different clusters: "),
        (_copy, "have the same directory id"),
        (_too_few, "voters 1, 2, 3 form the quorum, and the directories of 2, 3 are not here"),
        (_lose_end, f"ends at offset 0, and offset {RECORDS - 1} is committed"),
    ],
)
def test_problems_between_directories(
    nodes: list[Path], harm: Callable[[list[Path]], list[Path]], text: str, capsys: pytest.CaptureFixture[str]
):
    assert check(*harm(nodes)) == 1
    problems = [line for line in capsys.readouterr().out.splitlines() if line.startswith("problem: ")]
    assert any(text in line for line in problems), problems


def test_one_voter_may_be_elsewhere(nodes: list[Path], capsys: pytest.CaptureFixture[str]):
    assert check(*nodes[:2]) == 0
    said = capsys.readouterr().out
    assert "note: not here are the directories of these voters: 3; the others are a majority" in said
    assert "note: broker 3 is registered, and has no directory here" in said


def test_what_is_found_names_its_directory(nodes: list[Path], capsys: pytest.CaptureFixture[str]):
    (nodes[1] / "meta.properties").unlink()
    assert check(*nodes) == 1
    assert f"problem: {nodes[1]}: {nodes[1]} has no meta.properties" in capsys.readouterr().out
