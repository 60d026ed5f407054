"""The benchmark of groups: its clients do what they are meant to, at a node of ours, and its figures arrive."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import rounds
from benchmarks.groups import bench_groups as bench
from benchmarks.groups import loads, transactions
from benchmarks.groups.connections import Connection, frame_of, in_turn, pipelined
from benchmarks.groups.loads import CLASSIC, CONSUMER, Kind
from benchmarks.runner import Size
from ottla.wire.types import ApiVersionsRequest, ListGroupsRequest
from tests.component.broker.raw_client import running_node

PARTITIONS = 20


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    settings = {name.replace(".", "_"): value for name, value in bench.SETTINGS.items()}
    with running_node(tmp_path_factory.mktemp("node"), **settings) as running:
        port = running.node.advertised["PLAINTEXT"].port
        loads.create_topic(port, bench.TOPIC, 1)
        loads.create_topic(port, bench.WIDE_TOPIC, PARTITIONS)
        loads.await_coordinator(port, bench.TOPIC)
        yield port


def groups(port: int) -> dict[str, str]:
    """Group -> its state."""
    connection = Connection(port)
    listed = connection.call(ListGroupsRequest(), 5).groups
    connection.close()
    return {each.group_id: each.group_state for each in listed}


def test_requests_are_sent_one_by_one_and_together(port: int):
    frame = frame_of(ApiVersionsRequest("bench", "1"), 3)
    connections = [Connection(port) for _ in range(3)]
    assert in_turn(connections, [[frame]] * 3, 30) > 0
    assert pipelined(connections[0], frame, 30, 10) > 0
    for connection in connections:
        connection.close()


def test_commits_are_stored(port: int):
    assert loads.commits_in_turn(port, bench.TOPIC, 20, 2) > 0
    assert loads.commits_pipelined(port, bench.TOPIC, 200) > 0
    assert groups(port)["commits-1"] == "Empty"


@pytest.mark.parametrize("kind", [CLASSIC, CONSUMER], ids=lambda kind: kind.name)
def test_heartbeats_are_those_of_members(port: int, kind: Kind):
    frames = loads.heartbeat_frames(kind, port, bench.WIDE_TOPIC, PARTITIONS, groups=2, size=3)
    assert len(set(frames)) == 6
    assert {groups(port)[f"{kind.name}-3-{number:04}"] for number in range(2)} == {"Stable"}
    assert loads.heartbeats_in_turn(port, frames, 40) > 0
    assert loads.heartbeats_pipelined(port, frames, 200) > 0


def test_other_groups_have_a_member_each(port: int):
    loads.other_groups(port, bench.TOPIC, 0, 5)
    assert [groups(port)[f"other-{number}"] for number in range(5)] == ["Stable"] * 5


@pytest.mark.parametrize("kind", [CLASSIC, CONSUMER], ids=lambda kind: kind.name)
def test_a_newcomer_gets_a_share(port: int, kind: Kind):
    crew = loads.new_crew(kind, PARTITIONS)
    for _ in range(4):
        crew.add(kind.member(port, f"crew-{kind.name}", bench.WIDE_TOPIC, PARTITIONS))
    crew.settle()
    crew.add(kind.member(port, f"crew-{kind.name}", bench.WIDE_TOPIC, PARTITIONS))
    crew.settle()
    assert all(member.is_settled for member in crew.members)
    assert groups(port)[f"crew-{kind.name}"] == "Stable"
    crew.close()


def test_transactions_come_to_their_end(port: int):
    assert transactions.with_raw_frames(port, bench.TOPIC, 3, 2) > 0


def test_figures_arrive_in_the_table_and_in_the_file(tmp_path: Path):
    found = {
        "commit, one outstanding": {"Apache Kafka": [2e-4, 4e-4, 3e-4], "ottla": [1e-4, 1e-4, 1e-4]},
        "classic rebalance, 50 members, 500 partitions, after a join": {"ottla": [0.05], "Apache Kafka": [0.1]},
    }
    _, commit, rebalance = rounds.table(found, bench.is_rate)
    assert commit.split()[-3:] == ["10,000/s", "3,333/s", "3.00x"]
    assert rebalance.split()[-5:] == ["50", "ms", "100", "ms", "2.00x"]
    options = argparse.Namespace(rounds=3, window=0.0, size=Size.FULL, only="", out=tmp_path / "groups.json")
    rounds.save("groups", found, options, bench.PACKAGES)
    saved = json.loads(options.out.read_text(encoding="utf-8"))
    assert [(each["subject"], each["paired_over_first"]) for each in saved["results"][:2]] == [
        ("ottla", 1.0),
        ("Apache Kafka", 3.0),
    ]
