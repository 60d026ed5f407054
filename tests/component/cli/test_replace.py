"""`ottla cluster replace` on three nodes of ottla: a rolling restart, and where it stops."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import ottla.testing
from ottla.testing import Cluster
from tests.component.cli.live import Capture, Commands
from tests.component.cli.order_taker import OrderTaker


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster() as cluster:
        create(cluster, NewTopic("orders", 3, 3))
        yield cluster


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[OrderTaker]:
    with OrderTaker(tmp_path, lambda command, node_id: getattr(cluster[node_id], command)()) as operator:
        yield operator


@pytest.fixture
def commands(cluster: Cluster, capsys: Capture) -> Commands:
    return Commands(cluster.bootstrap_servers, capsys)


def create(cluster: Cluster, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([topic])[topic.topic].result(30)


REPLACE = ("cluster", "replace", "1", "2", "3", "--to", "ottla", "--yes")


def test_nodes_are_replaced_one_after_the_other(cluster: Cluster, operator: OrderTaker, commands: Commands):
    leader = cluster.quorum_leader().node_id
    said = commands.lines(*REPLACE, *operator.options(check="true"))
    order = [node_id for node_id in (1, 2, 3) if node_id != leader] + [leader]
    assert operator.orders == [f"{what} {node_id}" for node_id in order for what in ("stop", "start")]
    assert said[0].split() == ["NODE", "ADDRESS", "SOFTWARE", "PLAN"]
    assert said[-1] == "done: 3 nodes run ottla"
    assert f"node {leader}: checking" in said


def test_nodes_that_are_done_are_skipped(operator: OrderTaker, commands: Commands):
    assert (
        commands.lines("cluster", "replace", "--to", "ottla", *operator.options())[-1] == "all nodes run ottla already"
    )
    assert operator.orders == []


def test_a_dry_run_stops_nothing(operator: OrderTaker, commands: Commands):
    assert "becomes ottla" in commands(*REPLACE, "--dry-run", *operator.options())
    assert operator.orders == []


def failed(commands: Commands, code: int, *words: str) -> str:
    commands.capture.readouterr()
    assert commands.code(*words) == code
    return commands.capture.readouterr().err


def test_a_doubt_before_the_first_node(
    cluster: Cluster, operator: OrderTaker, commands: Commands, monkeypatch: pytest.MonkeyPatch
):
    """A topic with one replica cannot be written to while its node is away, unless that is accepted."""
    monkeypatch.setattr(import_module("ottla.cli.local_cluster.replace"), "_SETTLE_SECONDS", 0.5)  # not the command
    create(cluster, NewTopic("single", 1, replica_assignment=[[2]]))
    words = ("cluster", "replace", "2", "--to", "ottla", "--yes", *operator.options())
    said = failed(commands, 1, *words)
    assert (
        "ottla: node 2: partition single-0 could not be written to with acks=all while node 2 is away "
        "(nothing was done to this node)"
    ) in said
    assert operator.orders == []
    commands(*words, "--accept-unavailable")
    assert operator.orders == ["stop 2", "start 2"]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics(["single"])["single"].result(30)


def test_a_check_that_fails_stops_half_way(cluster: Cluster, operator: OrderTaker, commands: Commands):
    said = failed(commands, 1, *REPLACE, *operator.options(check="false", back="start-the-old {node} {host}"))
    (stopped,) = [order.removeprefix("stop ") for order in operator.orders]
    assert f"ottla: node {stopped}: false ended with exit code 1 (the node is stopped)" in said
    assert f"→ to have node {stopped} as it was: start-the-old {stopped} 127.0.0.1" in said
    assert "→ to continue, when this is mended: ottla cluster replace --to ottla" in said
    cluster[int(stopped)].start()
    cluster.wait_in_sync()


def test_a_node_that_does_not_come_back(cluster: Cluster, operator: OrderTaker, commands: Commands):
    said = failed(commands, 1, *REPLACE, *operator.options(start="true"), "--wait", "3s")
    (stopped,) = [order.removeprefix("stop ") for order in operator.orders]
    assert f"broker {stopped} is fenced" in said
    assert "the node was started, and has not come back" in said
    cluster[int(stopped)].start()
    cluster.wait_in_sync()


def test_the_wrong_software(operator: OrderTaker, commands: Commands):
    said = failed(commands, 1, "cluster", "replace", "1", "--to", "apache", "--yes", *operator.options())
    assert "it runs ottla, not Apache Kafka (--start has started the wrong software)" in said


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("7", "--to", "ottla"), "the cluster has no node 7"),
        (("--to", "redis"), "'redis' is not one of 'ottla', 'apache'"),
    ],
)
def test_what_cannot_be_asked_for(operator: OrderTaker, commands: Commands, words: tuple[str, ...], problem: str):
    assert problem in failed(commands, 2, "cluster", "replace", *words, *operator.options())
