"""`ottla topics reassign` and `ottla cluster rebalance` on three nodes: what was written moves with its partitions."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import ottla.testing
from ottla.client import EARLIEST, LATEST, Client, fetch, topics
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.topics import NewTopic
from ottla.testing import Cluster
from tests.component.cli.live import Capture, Commands

TOPIC = "orders"
COUNT = 300


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with ottla.testing.cluster() as cluster:
        asyncio.run(fill(cluster))
        yield cluster


@pytest.fixture
def commands(running: Cluster, capsys: Capture) -> Commands:
    return Commands(running.bootstrap_servers, capsys)


async def fill(cluster: Cluster) -> None:
    async with Client(cluster.bootstrap_servers) as client:
        await topics.create(client, NewTopic(TOPIC, assignments=dict.fromkeys(range(3), (1, 2))))
        await Producer(client).send_all([ProducerRecord(TOPIC, b"%d" % number) for number in range(COUNT)])


def replicas(cluster: Cluster) -> list[tuple[int, ...]]:
    async def find() -> list[tuple[int, ...]]:
        async with Client(cluster.bootstrap_servers) as client:
            (topic,) = await topics.describe(client, TOPIC)
            return [each.replicas for each in topic.partitions]

    return asyncio.run(find())


def values(cluster: Cluster) -> list[int]:
    async def find() -> list[int]:
        async with Client(cluster.bootstrap_servers) as client:
            start = {(TOPIC, number): EARLIEST for number in range(3)}
            return sorted([int(record.value or b"") async for record in fetch(client, start, until=LATEST)])

    return asyncio.run(find())


def throttles(commands: Commands) -> list[str]:
    rows = [
        row
        for kind, name in (("topic", TOPIC), ("broker", "1"), ("broker", "3"))
        for row in commands.json("configs", "list", kind, name)["rows"]
    ]
    return [row["name"] for row in rows if "throttled" in row["name"]]


def undone(path: str, folder: Path) -> str:
    """A plan with what another one has replaced."""
    plan = json.loads(Path(path).read_text())
    for each in plan["partitions"]:
        each["replicas"], each["before"] = each["before"], each["replicas"]
    other = folder / "undone.json"
    other.write_text(json.dumps(plan))
    return str(other)


def test_a_plan_is_made_run_verified_and_undone(running: Cluster, commands: Commands, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    planned = commands("topics", "reassign", "plan", TOPIC, "--to", "2,3", "--file", path)
    assert "3 partitions change: 3 replicas move" in planned
    assert replicas(running) == [(1, 2)] * 3, "a plan changes nothing"
    assert commands.code("topics", "reassign", "verify", path) == 1

    assert "everything has moved" in commands("topics", "reassign", "run", path, "--wait", "--yes")
    assert [sorted(each) for each in replicas(running)] == [[2, 3]] * 3
    assert values(running) == list(range(COUNT))
    verified = commands.json("topics", "reassign", "verify", path)
    assert [each["state"] for each in verified["rows"]] == ["done"] * 3

    commands("topics", "reassign", "run", path, "--undo", "--throttle", "100000", "--yes")
    assert throttles(commands)
    while commands.code("topics", "reassign", "verify", undone(path, tmp_path)):
        time.sleep(0.2)
    assert not throttles(commands), "they end with what they were for"
    assert replicas(running) == [(1, 2)] * 3
    assert values(running) == list(range(COUNT))
    assert "nothing is being moved" in commands("topics", "reassign", "cancel", "--yes")


def test_waiting_ends_when_a_topic_is_deleted_meanwhile(
    running: Cluster, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reassign = import_module("ottla.cli.topics.reassign")  # the package has the command by this name
    monkeypatch.setattr(reassign, "WAIT_SECONDS", 0.01)
    commands("topics", "create", "gone", "--copies", "1")
    path = tmp_path / "plan.json"
    gone = {"topic": "gone", "partition": 0, "replicas": [1, 2], "before": [1]}
    path.write_text(json.dumps({"partitions": [gone]}))

    def begin(*_: object) -> None:
        commands("topics", "delete", "gone", "--yes")

    monkeypatch.setattr(reassign, "begin_moves", begin)
    assert commands.code("topics", "reassign", "run", str(path), "--wait", "--throttle", "1000", "--yes") == 1
    assert "1 partition of 1 have not moved, and nothing is moving any more" in commands.capture.readouterr().err
    assert not throttles(commands)


def test_verify_removes_throttles_of_moves_that_were_cancelled(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "plan.json")
    commands("topics", "reassign", "plan", TOPIC, "--to", "2,3", "--file", path)
    monkeypatch.setattr(import_module("ottla.cli.topics.reassign"), "begin_moves", lambda *_: None)
    commands("topics", "reassign", "run", path, "--throttle", "1000", "--yes")
    assert commands.code("topics", "reassign", "verify", path, "--keep-throttles") == 1
    assert throttles(commands)
    assert commands.code("topics", "reassign", "verify", path) == 1
    assert not throttles(commands)


def test_rebalance_spreads_replicas_and_leaders(running: Cluster, commands: Commands, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    assert "preferred leaders change" in commands("cluster", "rebalance", "--dry-run", "--file", path)
    commands("topics", "reassign", "run", path, "--wait", "--yes")
    assert Counter(broker for each in replicas(running) for broker in each) == {1: 2, 2: 2, 3: 2}
    assert sorted(each[0] for each in replicas(running)) == [1, 2, 3]
    assert "nothing to move" in commands("cluster", "rebalance", "--yes")
    assert values(running) == list(range(COUNT))


def test_what_cannot_be_planned(commands: Commands, tmp_path: Path) -> None:
    assert "the cluster has no broker 9" in commands.refused(1, "topics", "reassign", "plan", "--to", "1,9")
    assert "4 replicas need as many brokers" in commands.refused(1, "topics", "reassign", "plan", "--copies", "4")
    assert "not a list of broker ids" in commands.refused(2, "topics", "reassign", "plan", "--to", "one")
    path = tmp_path / "plan.json"
    path.write_text("[]")
    assert "is not a plan" in commands.refused(2, "topics", "reassign", "run", str(path), "--yes")
