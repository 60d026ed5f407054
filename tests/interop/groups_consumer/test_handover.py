"""A directory changes hands: members of consumer groups go on with the other broker as if nothing had happened."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import ConsumerGroupDescribeRequest, CreateTopicsRequest
from tests.component.broker.raw_client import Connection, RawClient
from tests.interop.groups.brokers import new_node
from tests.interop.groups_consumer.conversation import Talk
from tests.interop.groups_consumer.record import SETTINGS, await_coordinator
from tests.interop.node.brokers import APACHE, OTTLA

GROUPS = ("plain", "static", "pattern", "mixed")
TOPICS = {"t1": 4, "t2": 2}
PATIENCE_S = 30
PAUSE_S = 0.2


class Members:
    """Members of several groups, who remember their epochs."""

    def __init__(self) -> None:
        self.topic_ids: dict[str, bytes] = {}
        self.classic = ""

    def create(self, connection: Connection) -> None:
        topics = tuple(CreateTopicsRequest.CreatableTopic(name, count, 1) for name, count in TOPICS.items())
        self.topic_ids = {
            each.name: each.topic_id for each in connection.ask(CreateTopicsRequest(topics, 30_000), 7).topics
        }

    def talk(self, connection: Connection) -> Talk:
        return Talk(connection.ask, self.topic_ids)

    def join(self, connection: Connection) -> None:
        await_coordinator(connection)
        talk = self.talk(connection)
        talk.join("plain", "A", "t1", "t2")
        talk.join("plain", "B", "t1", "t2", server_assignor="range")  # and A does not give up its part yet
        talk.join("static", "S", "t1", instance_id="i")
        talk.beat("static", "S", -2, instance_id="i")
        talk.join("pattern", "R", subscribed_topic_names=None, subscribed_topic_regex="t.")
        until(lambda: talk.beat("pattern", "R", 1).member_epoch == 2)
        talk.join("mixed", "M", "t1")
        self.classic, _ = talk.new_classic("mixed", "t1")
        talk.sync("mixed", self.classic, 3)

    def go_on(self, connection: Connection) -> None:
        """With the epochs they were told by the other broker."""
        talk = self.talk(connection)
        until(lambda: talk.beat("plain", "A", 2).error_code == 0)
        assert talk.beat("plain", "A", 2, owned={"t1": (0, 1), "t2": (0,)}).member_epoch == 3
        answer = talk.beat("plain", "B", 3)
        assert answer.assignment is not None
        assert sorted(each.partitions for each in answer.assignment.topic_partitions) == [(1,), (2, 3)]
        back = talk.join("static", "S2", "t1", instance_id="i")
        assert (back.member_epoch, back.assignment.topic_partitions[0].partitions) == (2, (0, 1, 2, 3))
        assert talk.beat("pattern", "R", 2).member_epoch == 2
        assert talk.beat("mixed", "M", 2, owned={"t1": (0, 1)}).member_epoch == 3
        assert talk.classic_beat("mixed", self.classic, 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert talk.classic_join("mixed", self.classic, "t1").generation_id == 3


def until(is_so: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(PAUSE_S)


def described(connection: Connection) -> list[Any]:
    def ask() -> list[Any]:
        return list(connection.ask(ConsumerGroupDescribeRequest(GROUPS), 1).groups)

    until(lambda: all(each.error_code == 0 for each in ask()))
    return sorted((_plain(each) for each in ask()), key=lambda group: group["group_id"])


def _plain(group: Any) -> dict[str, Any]:
    """What both brokers must agree on, in one order."""
    members = {
        member.member_id: (
            member.member_epoch,
            member.instance_id,
            member.subscribed_topic_regex,
            member.member_type,
            sorted(member.subscribed_topic_names),
            *(
                sorted((each.topic_name, tuple(sorted(each.partitions))) for each in assignment.topic_partitions)
                for assignment in (member.assignment, member.target_assignment)
            ),
        )
        for member in group.members
    }
    fields = ("group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name")
    return {name: getattr(group, name) for name in fields} | {"members": members}


@contextmanager
def serving(kind: str, directory: Path, data_dir: Path) -> Iterator[Connection]:
    with new_node(kind, directory, data_dir=data_dir, **SETTINGS) as node:
        connection = RawClient.at(node.bootstrap_servers).connect("handed-over")
        yield connection
        connection.close()


@pytest.mark.parametrize(("first", "second"), [(OTTLA, APACHE), (APACHE, OTTLA)])
def test_members_go_on_with_the_other_broker(first: str, second: str, apache_jars: Path, tmp_path: Path):
    members, data_dir = Members(), tmp_path / "data"
    with serving(first, tmp_path / "first", data_dir) as connection:
        members.create(connection)
        members.join(connection)
        before = described(connection)
    with serving(second, tmp_path / "second", data_dir) as connection:
        assert described(connection) == before
        members.go_on(connection)
        after = described(connection)
        assert [group["group_epoch"] for group in after] == [group["group_epoch"] for group in before]
        assert {group["group_state"] for group in after} == {"Stable"}
