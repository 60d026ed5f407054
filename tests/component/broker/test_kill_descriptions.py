"""kill -9 in the middle of every write of a push, and right after it: the group heals.

Before the note that the plugin holds the description is in the log, the next heartbeat of version 1 is asked again, one
member in a while; after it nobody is. Describe never shows what the plugin does not hold.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.wire.types import StreamsGroupHeartbeatRequest
from tests.component.broker.description_requests import IN_MEMORY, IN_TOPIC, Push, described, description, node, push
from tests.component.broker.raw_client import Closed, RawClient, RunningNode
from tests.component.broker.streams_requests import join, topology

EPOCH = 3
"""Of both members, when all is settled."""
_Beat = StreamsGroupHeartbeatRequest


@pytest.fixture(scope="module", params=[IN_TOPIC, IN_MEMORY], ids=["topic", "memory"])
def plugin(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, plugin: str) -> Path:
    """The data of a broker with a group of two members, of which one has been asked."""
    directory = tmp_path_factory.mktemp("prepared")
    with node(directory, plugin) as running:
        source = running.client.topic().name
        assert running.client.ask(join("g", "A", topology(source)), 1).topology_description_required
        running.advance(1_000)
        assert running.client.ask(join("g", "B", topology(source)), 1).member_epoch == EPOCH
        assert not is_asked(running, "A", EPOCH - 1)
    return directory


@contextmanager
def mortal_broker(directory: Path, number: int, end: str, plugin: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.component.broker.mortal_broker", str(directory), str(number), end, plugin]
    root = Path(__file__).parents[3]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        yield process
    finally:
        process.communicate(timeout=20)


def push_to(process: subprocess.Popen[str]) -> bool:
    """Push to a broker that may die of it; whether it said that it stored it."""
    assert process.stdout is not None
    client = RawClient("127.0.0.1", int(process.stdout.readline()))
    try:
        answer = client.ask(Push("g", "A", 0, description("t")), 0)
    except (ConnectionError, Closed):
        return False
    finally:
        client.close_all()
    assert answer.error_code == 0
    return True


def count_writes(prepared: Path, directory: Path, plugin: str) -> int:
    shutil.copytree(prepared, directory)
    with mortal_broker(directory, 0, "none", plugin) as process:
        assert push_to(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("how many\n")
        process.stdin.flush()
        return int(process.stdout.readline())


def is_noted(running: RunningNode) -> bool:
    """What the log says of the group, not what the coordinator makes of it."""
    found = []
    running.change(lambda: found.append(_stored(running)))
    return found[0] == 0


def _stored(running: RunningNode) -> int:
    for shard in running.node.groups.shards.values():
        for key, state in shard.core.hard_state().items():
            if key == ("streams", "g"):
                return int(state["descriptions"].stored)
    raise AssertionError("the group is gone")


def check_healed(running: RunningNode, *, plugin: str, was_answered: bool) -> None:
    noted = is_noted(running)
    assert noted or not was_answered
    (row,) = described(running, "g")
    is_shown = row.topology_description_status == 3
    assert is_shown == (noted and plugin == IN_TOPIC)  # what is in memory is gone with the process
    if is_shown:
        assert row.topology_description.subtopologies[0].nodes[0].source_topics == ("t",)
    asked = [is_asked(running, member_id) for member_id in "ABA"]
    assert asked == ([False] * 3 if noted else [True, False, False])
    if not noted:
        assert push(running, "g") == (0, None)
        assert described(running, "g")[0].topology_description_status == 3
    running.advance(4_000_000)
    assert not is_asked(running, "A")


def is_asked(running: RunningNode, member_id: str, member_epoch: int = EPOCH) -> bool:
    answer = running.client.ask(_Beat("g", member_id, member_epoch, 0), 1)
    assert answer.error_code == 0
    return bool(answer.topology_description_required)


def test_group_heals_after_a_kill_at_each_write_of_a_push(prepared: Path, tmp_path: Path, plugin: str) -> None:
    writes = count_writes(prepared, tmp_path / "counted", plugin)
    assert writes >= (3 if plugin == IN_TOPIC else 2)
    seen = set()
    for number in range(1, writes + 1):
        for end in ("half", "whole"):
            directory = tmp_path / f"{number}-{end}"
            shutil.copytree(prepared, directory)
            with mortal_broker(directory, number, end, plugin) as process:
                was_answered = push_to(process)
            assert process.returncode == -9
            with node(directory, plugin, ManualClock()) as running:
                seen.add(is_noted(running))
                check_healed(running, plugin=plugin, was_answered=was_answered)
    assert seen == {False, True}
