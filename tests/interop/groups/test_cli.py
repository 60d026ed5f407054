"""`ottla groups` beside Apache Kafka's own tool, on both brokers: what one shows and changes, the other one sees."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
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
from tests.interop.groups.tools import Tools

Capture = pytest.CaptureFixture[str]


class Commands:
    """Runs `ottla groups` against one cluster."""

    def __init__(self, servers: str, capture: Capture) -> None:
        self._to = ("--bootstrap-server", servers)
        self._capture = capture

    def __call__(self, *words: str) -> str:
        self._capture.readouterr()
        assert run(["groups", *words, *self._to]) == 0, self._capture.readouterr().err
        return self._capture.readouterr().out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def refused(self, *words: str) -> str:
        self._capture.readouterr()
        assert run(["groups", *words, *self._to]) in (1, 2)
        return self._capture.readouterr().err


@pytest.fixture
def commands(bootstrap_servers: str, capsys: Capture) -> Commands:
    return Commands(bootstrap_servers, capsys)


@pytest.fixture
def tools(bootstrap_servers: str, apache_jars: Path) -> Tools:
    return Tools(bootstrap_servers)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_from_its_first_member_to_its_end(commands: Commands, tools: Tools, name: str, protocol: str):
    topic = filled(tools.servers, name)
    settings = {"group_protocol": "consumer"} if protocol == "consumer" else {}
    with (
        Running(Confluent, tools.servers, name, topic, client_id="one", **settings) as one,
        Running(Confluent, tools.servers, name, topic, client_id="two", **settings) as two,
    ):
        shared(one, two)
        all_read(one, two)
        all_committed(one)
        active(commands, tools, name, protocol)
    until(
        "the group is empty",
        lambda: {each["group_id"]: each for each in commands.json("list")["rows"]}[name]["state"] == "Empty",
    )
    empty(commands, tools, name)


def active(commands: Commands, tools: Tools, name: str, protocol: str) -> None:
    (group,) = commands.json("describe", name)["rows"]
    assert (group["type"], group["state"]) == (protocol, "Stable")
    assert {member["client_id"] for member in group["members"]} == {"one", "two"}
    held = {member["member_id"]: {part["partition"] for part in member["assignment"]} for member in group["members"]}
    assert sorted(index for part in held.values() for index in part) == [*range(PARTITIONS)]
    if protocol == "consumer":
        assert group["group_epoch"] == group["assignment_epoch"]
        assert group["held_up_by"] == []
        assert all(member["target"] == member["assignment"] for member in group["members"])
    rows = commands.json("offsets", name)["rows"]
    theirs = {
        line.split()[2]: line.split()[3:6]
        for line in tools.groups("--describe", "--group", name)
        if line.startswith(f"{name} ")
    }
    for row in rows:
        ours = [row["committed_offset"], row["end_offset"], row["lag"]]
        assert ["-" if each is None else str(each) for each in ours] == theirs[str(row["partition"])]
        assert row["partition"] in held[row["member_id"]]
    assert "has 2 members (one, two)" in commands.refused("reset", name, "--all-topics", "--to-earliest", "--yes")
    assert "has 2 members (one, two), so it was not deleted" in commands.refused("delete", name, "--yes")
    assert "members of the group are subscribed" in commands.refused("delete-offsets", name, "--topic", name, "--yes")


def empty(commands: Commands, tools: Tools, name: str) -> None:
    back = commands.json("reset", name, "--topic", name, "--to-offset", "5", "--yes")
    assert {each["new_offset"] for each in back["rows"]} == {5}
    seen = [line.split()[3] for line in tools.groups("--describe", "--group", name) if line.startswith(f"{name} ")]
    assert seen == ["5"] * PARTITIONS
    behind = commands.json("offsets", name)["rows"]
    assert {row["lag"] for row in behind} == {PER_PARTITION - 5}
    assert all(0 < row["lag_seconds"] < 600 for row in behind)
    assert all(0 < time.time() * 1000 - row["oldest_timestamp_ms"] < 600_000 for row in behind)
    (listed,) = [each for each in commands.json("list", "--lag")["rows"] if each["group_id"] == name]
    assert (listed["members"], listed["lag"]) == (0, PARTITIONS * (PER_PARTITION - 5))
    assert commands("delete-offsets", name, "--topic", f"{name}:0", "--yes") == f"{name}-0 deleted\n"
    assert len(commands.json("offsets", name)["rows"]) == PARTITIONS - 1
    assert commands("delete", name, "--yes") == f"{name} deleted\n"
    assert name not in tools.groups("--list")
    assert f"group '{name}' does not exist" in commands.refused("describe", name)
