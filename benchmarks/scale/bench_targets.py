"""Large groups: how long a new target holds up the event loop of ottla, and how soon it is there.

    python -m benchmarks.scale.bench_targets [--quick] [--rounds 1] [--only TEXT] [--out FILE]

Members of a group are played by raw frames on one connection. When all have joined and have their targets, one more
joins: that is timed until its heartbeat tells it the epoch of the new target, while all other members keep sending
heartbeats. Of the turns of the loop that took a millisecond and more the longest is shown, by the processor time of its
thread; the longest by the clock stands beside it, since other programs prolong that.

Members that subscribe to all topics do so by a pattern. Joins are shown apart: the first member of a group makes the
coordinator look at all topics.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from benchmarks.scale.controllers import OttlaNode
from benchmarks.scale.measured_node import NOTED_S
from ottla.wire.errors import ErrorCode
from ottla.wire.types import ConsumerGroupHeartbeatRequest, CreateTopicsRequest, ShareGroupHeartbeatRequest
from tests.component.broker.raw_client import Connection, RawClient

PACKAGES = ("msgspec",)
TOPICS_PER_REQUEST = 250
SETTLE_S = 300.0
PAUSE_S = 0.005
TIMEOUT_S = 120.0
SETTINGS = {
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "1800000",
    "group.share.max.session.timeout.ms": "1800000",
    "group.share.max.share.sessions": "2000",
    "group.share.max.size": "1000",
    "group.share.session.timeout.ms": "1800000",
    "offsets.topic.num.partitions": "1",
}


class Case(NamedTuple):
    kind: str
    members: int
    topics: int
    subscribed: int
    """Topics that each member subscribes to: all of them, or some at random."""
    group: str = "large"

    @property
    def name(self) -> str:
        each = "" if self.subscribed == self.topics else f", {self.subscribed:,} at random for each"
        return f"{self.kind} group, {self.members:,} members, {self.topics:,} topics{each}"


class Scale(NamedTuple):
    cases: tuple[Case, ...]
    interval_ms: int = 15_000
    """The assignment interval. This is the longest that Kafka allows by default: most members join within one."""

    @property
    def settings(self) -> dict[str, str]:
        intervals = (f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share"))
        return SETTINGS | dict.fromkeys(intervals, str(self.interval_ms))


SCALES = {
    Size.FULL: Scale(
        (
            Case("consumer", 1_000, 10_000, 10_000),
            Case("consumer", 1_000, 1_000, 100),
            Case("share", 999, 1_000, 100),
        )
    ),
    Size.QUICK: Scale(
        (
            Case("consumer", 200, 3_000, 3_000),
            Case("consumer", 200, 300, 30),
            Case("share", 200, 300, 30),
        )
    ),
    Size.SMOKE: Scale((Case("consumer", 3, 4, 4), Case("share", 3, 4, 2)), 200),
}


class Member:
    """Heartbeats as a member of either kind of group sends them. It takes and gives up partitions at once."""

    def __init__(self, case: Case, number: int, names: Sequence[str]) -> None:
        self._kind, self._group = case.kind, case.group
        self._member_id = f"member-{number:05}"
        self._names = tuple(names)
        self._has_pattern = case.kind == "consumer" and case.subscribed == case.topics
        self.epoch = 0
        self.owned: Any = ()

    def request(self) -> Any:  # noqa: ANN401
        names = self._names if self.epoch == 0 else None
        if self._kind == "share":
            return ShareGroupHeartbeatRequest(self._group, self._member_id, self.epoch, None, names)
        timeout_ms = 1_800_000 if self.epoch == 0 else -1
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=None if self._has_pattern else names,
            subscribed_topic_regex="topic-.*" if self._has_pattern and self.epoch == 0 else None,
            topic_partitions=self.owned,
        )

    def take(self, answer: Any) -> None:  # noqa: ANN401
        assert answer.error_code == ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None and self._kind == "consumer":
            kind = ConsumerGroupHeartbeatRequest.TopicPartitions
            self.owned = tuple(kind(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions)


def beat(connection: Connection, member: Member) -> None:
    member.take(connection.ask(member.request(), 1))


def create(client: RawClient, topic_count: int) -> list[str]:
    names = [f"topic-{number:05}" for number in range(topic_count)]
    kind = CreateTopicsRequest
    for start in range(0, topic_count, TOPICS_PER_REQUEST):
        wanted = tuple(kind.CreatableTopic(name, 1, 1) for name in names[start : start + TOPICS_PER_REQUEST])
        answer = client.connection.ask(kind(wanted, 60_000), 7)
        assert not any(topic.error_code for topic in answer.topics), answer.topics[0]
    return names


def settle(connection: Connection, members: Sequence[Member], is_settled: Callable[[], bool]) -> None:
    """Let all members send heartbeats, over and over, until something is so."""
    deadline = time.monotonic() + SETTLE_S
    while not is_settled():
        assert time.monotonic() < deadline, "the group does not settle"
        for member in members:
            beat(connection, member)
            time.sleep(PAUSE_S)
            if is_settled():
                return


def warm_up(connection: Connection, case: Case, names: Sequence[str]) -> None:
    """A small group of the same kind comes and goes: code is loaded when it is first used."""
    members = [Member(case._replace(group="small", subscribed=2), number, names[:2]) for number in range(2)]
    deadline = time.monotonic() + SETTLE_S
    while connection.ask(members[0].request(), 1).error_code != ErrorCode.NONE:
        assert time.monotonic() < deadline, "there is no coordinator"
        time.sleep(PAUSE_S)
    for _ in range(3):
        for member in members:
            beat(connection, member)


def measure(broker: Broker, _: Path, case: Case, interval_ms: int) -> Figures:
    assert isinstance(broker, OttlaNode)
    broker.prepare()
    broker.exec()
    client = RawClient.at(f"127.0.0.1:{broker.port}")
    connection = client.connect(timeout_s=TIMEOUT_S)
    names = create(client, case.topics)
    warm_up(connection, case, names)
    choice = random.Random(case.name)
    members = [Member(case, number, choice.sample(names, case.subscribed)) for number in range(case.members + 1)]
    *first, last = members
    began = time.monotonic()
    for member in first:
        beat(connection, member)
    yield from longest(broker, f"{case.name}: all join", began)
    began = time.monotonic()
    for _ in range(2):  # the targets of the last members, and then nothing more
        time.sleep(interval_ms / 1000)
        beat(connection, first[0])
        settle(connection, first, lambda: len({member.epoch for member in first}) == 1)
    yield from longest(broker, f"{case.name}: the first targets", began)
    time.sleep(interval_ms / 1000)
    epoch = first[0].epoch
    began = time.monotonic()
    beat(connection, last)
    settle(connection, [*first[:50], last], lambda: last.epoch > epoch)
    yield f"{case.name}: one more, until the target is there", time.monotonic() - began
    yield from longest(broker, f"{case.name}: one more", began)
    client.close_all()


def longest(broker: OttlaNode, what: str, began: float) -> Figures:
    turns = broker.turns(began, time.monotonic())
    yield f"{what}, longest turn of the loop", max((turn.cpu_s for turn in turns), default=NOTED_S)
    yield f"{what}, longest turn by the clock", max((turn.wall_s for turn in turns), default=NOTED_S)


def new_node(_: str, directory: Path, settings: Mapping[str, str] | None, __: Path | None) -> Broker:
    return OttlaNode(directory, settings or {})


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, "part of the name of a case, as share", arguments, SCALES)
    scale: Scale = options.scale
    options.brokers = OttlaNode.name  # Apache Kafka has no event loop to look at
    chosen = [case for case in scale.cases if options.only in case.name]
    measures = [partial(measure, case=case, interval_ms=scale.interval_ms) for case in chosen]
    return rounds.run("scale-targets", options, measures, PACKAGES, settings=scale.settings, new_broker=new_node)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
