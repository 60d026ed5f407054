"""The same frames to both brokers: the same answers, and the same records in the same order.

Texts may differ, and so may what docs/reference/differences.md lists: how often offsets of tasks are to be reported
(Apache Kafka 4.3.1 says 0), how soon a waiting member is to come back, and the assignment epoch of a group that has
become empty, which follows the group's as in 4.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client import EARLIEST, LATEST, Client, fetch
from ottla.wire import to_json
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import decode_keyed
from ottla.wire.types import (
    FindCoordinatorRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
)
from tests.component.broker.raw_client import RawClient
from tests.interop.node.brokers import Node
from tests.interop.streams.conftest import made
from tests.interop.streams.feeding import create, wait_until

_Request = StreamsGroupHeartbeatRequest
_NOTHING: Any = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
SETTINGS = {"group.streams.assignment.interval.ms": "0", "offsets.topic.num.partitions": "1"}


class Talk:
    """A conversation with one broker; what it answered, as far as it must be the same."""

    def __init__(self, broker: Node, group: str) -> None:
        host, _, port = broker.bootstrap_servers.partition(":")
        self._client = RawClient(host, int(port))
        self._servers = broker.bootstrap_servers
        self.group = group
        self.epochs: dict[str, int] = {}
        self.heard: list[Any] = []
        self._wait_for_coordinator()

    def close(self) -> None:
        self._client.close()

    def join(self, member: str, declared: _Request.Topology, **fields: Any) -> None:
        known = {"rebalance_timeout_ms": 60_000, "topology": declared, "process_id": f"process-{member}"} | _NOTHING
        self.say(_Request(self.group, member, 0, -1, **(known | fields)))

    def beat(self, member: str, owned: tuple[int, ...] | None = None, epoch: int | None = None, **fields: Any) -> None:
        lists = {} if owned is None else _NOTHING | {"active_tasks": (_Request.TaskIds("0", owned),) if owned else ()}
        given = self.epochs.get(member, 0) if epoch is None else epoch
        self.say(_Request(self.group, member, given, 0, **(lists | fields)))

    def _wait_for_coordinator(self) -> None:
        """Apache Kafka creates the topic of groups when it is first asked for a coordinator, and needs a moment."""
        find = FindCoordinatorRequest(coordinator_keys=(self.group,))
        beat = _Request(self.group, "nobody", 1)

        def is_there() -> bool:
            found = self._client.ask(find, 6).coordinators[0].error_code == 0
            return found and self._client.ask(beat, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND

        wait_until("the coordinator", is_there)

    def say(self, request: _Request) -> None:
        answer = self._client.ask(request, 0)
        if not answer.error_code and answer.member_epoch > 0:
            self.epochs[request.member_id] = answer.member_epoch
        self.heard.append(_comparable(answer))

    def describe(self) -> None:
        (row,) = self._client.ask(StreamsGroupDescribeRequest((self.group,)), 0).groups
        shown = to_json(StreamsGroupDescribeResponse(groups=(row,)), 0)["groups"][0]
        for member in shown["members"]:
            member.pop("clientHost")
        self.heard.append({name: value for name, value in shown.items() if name != "errorMessage"})

    def records(self) -> list[Any]:
        """What the group's records say, in order, without what must differ."""

        async def read() -> list[Any]:
            async with Client(self._servers) as client:
                start = {("__consumer_offsets", 0): EARLIEST}
                return [record async for record in fetch(client, start, until=LATEST)]

        found = [decode_keyed("__consumer_offsets", each.key, each.value) for each in asyncio.run(read())]
        return [_plain(each) for each in found if getattr(each.key, "group_id", None) == self.group]


def _comparable(answer: Any) -> dict[str, Any]:
    shown: dict[str, Any] = to_json(answer, 0)
    for name in ("errorMessage", "heartbeatIntervalMs", "taskOffsetIntervalMs", "throttleTimeMs"):
        shown.pop(name)
    shown["status"] = [each["statusCode"] for each in shown["status"] or ()]
    return shown


def _plain(record: Any) -> Any:
    key = to_json(record.key, record.key_version)
    if record.value is None:
        return type(record.key).__name__, key, None
    value = to_json(record.value, record.value_version)
    for name in ("metadataHash", "assignmentTimestamp"):
        value.pop(name, None)
    return type(record.key).__name__, key, value


@pytest.fixture(scope="module")
def brokers(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    base = tmp_path_factory.mktemp("frames")
    with made("ottla", base / "ottla", **SETTINGS) as ottla, made("apache", base / "apache", **SETTINGS) as apache:
        for broker in (ottla, apache):
            create(broker.bootstrap_servers, "t", partitions=3)
            create(broker.bootstrap_servers, "u", partitions=2)
        yield ottla, apache


def topology(*subtopologies: Any, epoch: int = 0) -> _Request.Topology:
    return _Request.Topology(epoch, subtopologies or (_Request.Subtopology("0", ("t",)),))


def both(brokers: tuple[Node, Node], group: str, conversation: Any) -> tuple[Talk, Talk]:
    talks = tuple(Talk(broker, group) for broker in brokers)
    for talk in talks:
        conversation(talk)
    return talks  # type: ignore[return-value]


def test_members_come_and_go(brokers: tuple[Node, Node]):
    def conversation(talk: Talk) -> None:
        talk.join("A", topology())
        talk.beat("A")
        talk.beat("A", (0, 1, 2))
        talk.join("A", topology())
        talk.describe()
        talk.join("B", topology())
        talk.beat("B")
        talk.describe()
        talk.beat("A")
        talk.beat("A")
        talk.describe()
        talk.beat("A", (0, 1))
        talk.beat("B")
        talk.beat("B", (2,))
        talk.describe()
        talk.beat("A", epoch=9)
        talk.beat("A", epoch=1)
        talk.beat("X", epoch=3)
        talk.beat("A", rack_id="r", client_tags=(_Request.KeyValue("zone", "z"),))
        talk.beat("B")
        talk.beat("A", epoch=-1)
        talk.beat("B")
        talk.describe()

    ours, theirs = both(brokers, "come-and-go", conversation)
    assert ours.heard == theirs.heard
    assert ours.records() == theirs.records()
    assert len(ours.records()) > 20
    for talk in (ours, theirs):
        talk.close()


def test_requests_that_are_refused(brokers: tuple[Node, Node]):
    def conversation(talk: Talk) -> None:
        talk.beat("A", epoch=3)
        talk.beat("A", epoch=-1)
        talk.join("A", topology(), active_tasks=None)
        talk.join("A", topology(), active_tasks=None, standby_tasks=None, warmup_tasks=None)
        talk.join("A", topology(), rebalance_timeout_ms=-1)
        talk.join("A", topology(), topology=None)
        talk.join("A", topology(_Request.Subtopology("0", ("t",), ("t.*",))))
        talk.join(
            "A", topology(_Request.Subtopology("0", ("t",), state_changelog_topics=(_Request.TopicInfo("c", 3),)))
        )
        talk.join("A", topology(_Request.Subtopology("0", ("__consumer_offsets",))))
        talk.join("A", topology(_Request.Subtopology("0", ("bad name",))))
        talk.join(" ", topology())
        talk.join("A", topology(), rack_id=" ")
        talk.join(
            "A", topology(_Request.Subtopology("0", ("t",), repartition_source_topics=(_Request.TopicInfo("r"),)))
        )
        talk.describe()
        talk.join("A", topology())
        talk.beat("A", epoch=-3)
        talk.beat("A", epoch=-2)
        talk.beat("A", topology=topology())
        talk.beat("A", active_tasks=())
        talk.beat("A", (99,))
        talk.join("B", topology(_Request.Subtopology("0", ("u",))))
        talk.join("B", topology(epoch=1))
        talk.describe()

    ours, theirs = both(brokers, "refused", conversation)
    assert ours.heard == theirs.heard
    assert ours.records() == theirs.records()
    for talk in (ours, theirs):
        talk.close()


def test_topologies_that_do_not_fit(brokers: tuple[Node, Node]):
    together = _Request.CopartitionGroup(source_topics=(0, 1))
    cases = {
        "missing": topology(_Request.Subtopology("0", ("nowhere",))),
        "uneven": topology(_Request.Subtopology("0", ("t", "u"), copartition_groups=(together,))),
        "loop": topology(
            _Request.Subtopology(
                "0", repartition_source_topics=(_Request.TopicInfo("r"),), repartition_sink_topics=("r",)
            )
        ),
        "nothing": topology(_Request.Subtopology("0", ("t",)), _Request.Subtopology("1")),
        "wrong": topology(_Request.Subtopology("0", ("t",), state_changelog_topics=(_Request.TopicInfo("u"),))),
    }

    for name, declared in cases.items():

        def conversation(talk: Talk, declared: Any = declared) -> None:
            talk.join("A", declared)
            talk.describe()

        ours, theirs = both(brokers, f"case-{name}", conversation)
        assert ours.heard == theirs.heard, name
        assert ours.records() == theirs.records(), name
        for talk in (ours, theirs):
            talk.close()
