"""Hand-over of groups and offsets between ottla and Apache Kafka on one directory, both ways, stopped or killed.

What was committed stays committed, groups keep their kind and state, deleted ones stay deleted; and members that are
connected while the broker is replaced go on by themselves, since both listen at the same address.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Client
from ottla.client.topics import NewTopic, create
from tests.interop.apache import dump_log
from tests.interop.groups.brokers import Node, new_node
from tests.interop.groups.commits import Found, change, found
from tests.interop.groups.members import (
    PARTITIONS,
    PER_PARTITION,
    Confluent,
    Running,
    all_committed,
    all_read,
    filled,
    shared,
    until,
)
from tests.interop.node.brokers import APACHE, OTTLA

LOAD_LIMIT_S = 20
SETTINGS = {"offsets.topic.num.partitions": 5}
"""Groups are spread over several partitions of the topic of offsets."""


class Pair:
    """An ottla and an Apache Kafka that take turns on one directory."""

    def __init__(self, tmp_path: Path) -> None:
        data = tmp_path / "data"
        self.nodes: dict[str, Node] = {
            kind: new_node(kind, tmp_path / kind, data_dir=data, **SETTINGS) for kind in (OTTLA, APACHE)
        }

    def start(self, kind: str) -> Node:
        self.nodes[kind].start()
        return self.nodes[kind]

    def close(self) -> None:
        for node in self.nodes.values():
            if node.running:
                node.kill()


@pytest.fixture
def pair(apache_jars: Path, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def end(node: Node, how: str) -> None:
    (node.stop if how == "stopped" else node.kill)()


def on(node: Node, work: Callable[[Client], Any]) -> Any:
    async def run() -> Any:
        async with Client(node.bootstrap_servers) as client:
            return await work(client)

    return asyncio.run(run())


def check_same(node: Node, before: Found) -> None:
    """Apache Kafka lists a group only when its partition has been loaded, which goes on after the start."""
    deadline = time.monotonic() + LOAD_LIMIT_S
    while on(node, found) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert on(node, found) == before


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_to_and_fro(pair: Pair, how: str):
    node = pair.start(OTTLA)
    on(node, lambda client: create(client, NewTopic("orders", 3)))
    for round_, following in enumerate([APACHE, OTTLA, APACHE, OTTLA]):
        on(node, lambda client, round_=round_: change(client, round_))
        before = on(node, found)
        assert len(before[0]) == 12
        assert before[1][0] == ("group-0", "classic", "Empty", "")
        end(node, how)
        node = pair.start(following)
        check_same(node, before)


@pytest.mark.parametrize(("first", "second"), [(OTTLA, APACHE), (APACHE, OTTLA)])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_empty_group_with_a_history(pair: Pair, first: str, second: str, protocol: str):
    """A group whose members came and went is there with its kind, its offsets, and who joins next goes on there."""
    node = pair.start(first)
    settings = {"group_protocol": protocol} if protocol == "consumer" else {}
    filled(node.bootstrap_servers, "history")
    with Running(Confluent, node.bootstrap_servers, "old", "history", **settings) as one:
        shared(one)
        all_read(one)
        all_committed(one)
    until("the group is empty", lambda: on(node, found)[1] == [("old", protocol, "Empty", "consumer")])
    before = on(node, found)
    end(node, "stopped")
    node = pair.start(second)
    check_same(node, before)
    with Running(Confluent, node.bootstrap_servers, "old", "history", **settings) as again:
        shared(again)
        assert again.ask(lambda each: each.committed()) == dict.fromkeys(range(PARTITIONS), PER_PARTITION)
        assert again.read == set()


@pytest.mark.parametrize(("first", "second"), [(OTTLA, APACHE), (APACHE, OTTLA)])
def test_members_go_on_with_another_broker(pair: Pair, first: str, second: str):
    """The broker under a living group is replaced: the members do not notice more than a restart."""
    node = pair.start(first)
    pair.nodes[second]._ports = node._ports
    filled(node.bootstrap_servers, "live")
    with (
        Running(Confluent, node.bootstrap_servers, "living", "live") as one,
        Running(Confluent, node.bootstrap_servers, "living", "live") as two,
    ):
        shared(one, two)
        all_read(one, two)
        all_committed(one, two)
        end(node, "killed")
        node = pair.start(second)
        shared(one, two)
        until(
            "the group is stable again",
            lambda: ("living", "classic", "Stable", "consumer") in on(node, found)[1],
        )
        offsets = on(node, found)[0]["living"]
        assert {at.partition: each.offset for at, each in offsets.items()} == dict.fromkeys(
            range(PARTITIONS), PER_PARTITION
        )


def test_the_dump_of_ottlas_offsets_is_whole(pair: Pair):
    """kafka-dump-log prints every record of every partition of the topic of offsets."""
    node = pair.start(OTTLA)
    on(node, lambda client: create(client, NewTopic("orders", 3)))
    on(node, lambda client: change(client, 1))
    end(node, "stopped")
    logs = sorted(node.data_dir.glob("__consumer_offsets-*/*.log"))
    assert len(logs) > 1
    dumped = dump_log(logs, "--offsets-decoder")
    assert "Exception" not in dumped
    rows = [line for line in dumped.splitlines() if line.startswith("| offset:")]
    assert all(re.search(r"key: \{.*\} payload: (\{.*\}|<DELETE>)$", line) for line in rows)
    # Thirteen groups commit three offsets each; then a group goes with its offsets, and one offset by itself.
    assert len(rows) == 13 * 3 + (3 + 1) + 1
