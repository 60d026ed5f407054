"""Crashes: what was said about a record and answered stays said, and whatever else there is comes again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from tests.component.broker.raw_client import RunningNode
from tests.component.broker.share.share_members import (
    WAIT,
    Member,
    configure,
    initialize,
    kept,
    new_group,
    produce,
)

ACCEPT, RELEASE, REJECT = 1, 2, 3


class Crashing:
    """A node that is killed and started again on the same directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.running = self._start()

    def _start(self) -> RunningNode:
        running = RunningNode(self._directory, ManualClock(), share_coordinator_state_topic_num_partitions=1)
        running.start()
        return running

    def crash(self) -> None:
        self.running.kill()
        self.running.client.close_all()
        self.running = self._start()

    def resumed(self, member: Member) -> Member:
        """The member, connected to the node as it is now, with its old epoch."""
        again = Member(self.running.client, member.group, member.name, member.topic, *member.partitions)
        again.epoch = member.epoch
        return again


@pytest.fixture
def crashing(tmp_path: Path) -> Iterator[Crashing]:
    crashing = Crashing(tmp_path)
    yield crashing
    crashing.running.stop()
    crashing.running.client.close_all()


def begun(crashing: Crashing, *sizes: int, start: int = 0) -> Member:
    client = crashing.running.client
    topic, group = client.topic(), new_group()
    produce(client, topic, *sizes)
    initialize(client, group, topic, start=start)
    return Member(client, group, "a", topic)


def test_killed_in_the_middle_of_everything(crashing: Crashing):
    """A window with records in every state, from the log alone."""
    member = begun(crashing, *[10] * 6)
    assert member.take(max_records=40) == [(0, 39, 1)]
    assert member.acknowledge((5, 9, [ACCEPT]), (12, 12, [REJECT]), (20, 24, [RELEASE]), (30, 39, [ACCEPT])) == 0
    assert member.take(max_records=5) == [(20, 24, 2)]
    assert member.acknowledge((21, 21, [ACCEPT])) == 0
    crashing.crash()
    member = crashing.resumed(member)
    assert member.fetch().error_code == 122
    member.epoch = 0
    answer = member.take(max_records=40, **WAIT)
    expected = [(0, 4, 1), (10, 11, 1), (13, 19, 1), (20, 20, 2), (22, 24, 2), (25, 29, 1)]
    assert offsets(answer)[: len(offsets(expected))] == offsets(expected)
    while more := member.take():
        answer += more
    assert offsets(answer) == [*offsets(expected), *[(offset, 1) for offset in range(40, 60)]]


def offsets(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    return [(offset, count) for first, last, count in ranges for offset in range(first, last + 1)]


def test_killed_after_latest_and_before_any_acknowledgement(crashing: Crashing):
    member = begun(crashing, 5, start=-1)
    client = crashing.running.client
    number = member.wait(crashing.running)
    produce(client, member.topic, 10)
    assert [(each.first_offset, each.last_offset) for each in ranges(member.receive(number))] == [(5, 14)]
    crashing.crash()
    member = crashing.resumed(member)
    member.epoch = 0
    assert member.take(**WAIT) == [(5, 14, 1)]


def ranges(answer: Any) -> Any:
    return answer.responses[0].partitions[0].acquired_records


def test_killed_before_the_answer_leaves(crashing: Crashing, monkeypatch: pytest.MonkeyPatch):
    member = begun(crashing, 5)
    assert member.take() == [(0, 4, 1)]
    edge, written = crashing.running.node.share.leader.edge, []
    persist = edge.persist
    monkeypatch.setattr(edge, "persist", lambda body, done: persist(body, written.append))
    member.send({0: [(0, 2, [ACCEPT])]})
    crashing.running.until(lambda: written)
    crashing.crash()
    member = crashing.resumed(member)
    assert member.acknowledge_all({0: [(0, 2, [ACCEPT])]}).error_code == 122
    member.epoch = 0
    assert member.take(max_records=1, **WAIT) == [(3, 4, 1)]
    assert member.acknowledge((0, 2, [ACCEPT])) in (0, 121)
    assert member.take() == []


def test_killed_before_the_write(crashing: Crashing, monkeypatch: pytest.MonkeyPatch):
    member = begun(crashing, 5)
    assert member.take() == [(0, 4, 1)]
    asked: list[object] = []
    monkeypatch.setattr(crashing.running.node.share.leader.edge, "persist", lambda body, done: asked.append(body))
    member.send({0: [(0, 2, [ACCEPT])]})
    crashing.running.until(lambda: asked)
    crashing.crash()
    member = crashing.resumed(member)
    member.epoch = 0
    assert member.take(**WAIT) == [(0, 4, 1)]


def test_reset_to_earliest_is_kept_though_the_log_loses_its_beginning(crashing: Crashing):
    member = begun(crashing, 5, 5, start=-1)
    configure(member.client, member.group, auto_offset_reset="earliest")
    assert member.take(max_records=5, **WAIT) == [(0, 4, 1)]
    crashing.crash()
    member = crashing.resumed(member)
    assert kept(member.client, member.group, member.topic) == (0, [])
    member.epoch = 0
    assert member.take(**WAIT) == [(0, 9, 1)]


def test_the_locks_of_a_crashed_node_are_gone(crashing: Crashing):
    member = begun(crashing, 5)
    assert member.take() == [(0, 4, 1)]
    assert member.acknowledge((0, 4, [RELEASE])) == 0
    assert member.take() == [(0, 4, 2)]
    crashing.crash()
    other = Member(crashing.running.client, member.group, "b", member.topic)
    assert other.take(**WAIT) == [(0, 4, 2)], "the delivery that was lost is not counted"
