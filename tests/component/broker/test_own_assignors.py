"""Assignors of one's own, and large targets, in a node with its child processes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.config.node_config import StartError
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.wire.errors import ErrorCode
from ottla.wire.types import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from tests.component.broker.raw_client import RunningNode, Topic, running_node
from tests.component.broker.starting import try_to_start

OWN = "tests.component.broker.own_assignors"
NAMES = ("Reverse", "Raising", "Twice", "Hanging", "Ending")
WAIT_S = 20.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    settings = {
        "group.consumer.assignors": ",".join(["uniform", "range", *(f"{OWN}:{name}" for name in NAMES)]),
        "group.consumer.assignment.interval.ms": 0,
        "ottla.group.assignor.timeout.ms": 3_000,
        "offsets.topic.num.partitions": 1,
    }
    with running_node(tmp_path_factory.mktemp("own"), **settings) as node:
        yield node


def heartbeat(running: RunningNode, group: str, member: str, epoch: int, **fields: Any) -> Any:
    return running.client.ask(ConsumerGroupHeartbeatRequest(group, member, epoch, **fields), 1)


def join(running: RunningNode, group: str, member: str, topic: Topic, assignor: str) -> Any:
    return heartbeat(
        running,
        group,
        member,
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(topic.name,),
        topic_partitions=(),
        server_assignor=assignor,
    )


def group_of(running: RunningNode, group_id: str) -> ConsumerGroup:
    (shard,) = running.node.groups.shards.values()
    group = shard.core.families["consumer"]._table.get(group_id)  # type: ignore[attr-defined]
    assert isinstance(group, ConsumerGroup)
    return group


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)


def target(running: RunningNode, group_id: str) -> dict[str, tuple[int, ...]]:
    group = group_of(running, group_id)
    return {each: next(iter(group.target(each).values()), ()) for each in sorted(group.members)}


def test_members_get_what_it_says(running: RunningNode):
    topic = running.client.topic(partitions=5)
    answer = join(running, "reversed", "a", topic, "reverse")
    assert (answer.error_code, answer.member_epoch) == (0, 1)
    join(running, "reversed", "b", topic, "reverse")
    wait_for(lambda: target(running, "reversed") == {"a": (0, 2, 4), "b": (1, 3)})
    answer = heartbeat(running, "reversed", "b", 1, topic_partitions=())
    (assigned,) = answer.assignment.topic_partitions
    assert tuple(assigned.partitions) == (1, 3)
    (described,) = running.client.ask(ConsumerGroupDescribeRequest(("reversed",)), 1).groups
    assert described.assignor_name == "reverse"


def test_others_are_as_before(running: RunningNode):
    topic = running.client.topic(partitions=4)
    answer = join(running, "plain", "a", topic, "range")
    assert tuple(answer.assignment.topic_partitions[0].partitions) == (0, 1, 2, 3)
    assert join(running, "plain", "b", topic, "unknown").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("raising", "ValueError: no luck today"),
        ("twice", "to a and to b"),
        ("hanging", "no answer within 3000 ms"),
        ("ending", "its process has ended with code 7"),
    ],
)
def test_a_bad_one_leaves_the_target_as_it_is(
    running: RunningNode, name: str, told: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    topic = running.client.topic(partitions=4)
    group_id = f"bad-{name}"
    join(running, group_id, "a", topic, "range")
    join(running, group_id, "b", topic, name)
    wait_for(lambda: target(running, group_id) == {"a": (0, 1), "b": (2, 3)})
    heartbeat(running, group_id, "a", group_of(running, group_id).members["a"].member_epoch, server_assignor=name)
    join(running, group_id, "c", topic, name)
    wait_for(lambda: told in caplog.text)
    assert f"group {group_id} keeps its target of epoch 3, that of epoch 4 cannot be had" in caplog.text
    assert target(running, group_id) == {"a": (0, 1), "b": (2, 3), "c": ()}


def test_a_large_target_is_computed_beside_the_requests(running: RunningNode):
    topic = running.client.topic(partitions=2_500)
    answer = join(running, "large", "a", topic, "uniform")
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (1, ())
    join(running, "large", "b", topic, "uniform")
    wait_for(lambda: sorted(map(len, target(running, "large").values())) == [1_250, 1_250])
    wait_for(lambda: group_of(running, "large").target_job is None)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("uniform,stickiest", "stickiest is neither uniform nor range nor a dotted name such as package.module:Name"),
        ("no.such.module:Name", "no.such.module cannot be imported: No module named 'no'"),
        (f"{OWN}:Missing", f"{OWN} has no class Missing"),
        (f"{OWN}:Uniform", f"the name of {OWN}:Uniform, uniform, is that of another assignor, too"),
        (f"{OWN}:Reverse,{OWN}.Reverse", f"the name of {OWN}.Reverse, reverse, is that of another assignor, too"),
    ],
)
def test_a_node_with_a_bad_name_does_not_start(tmp_path: Path, value: str, told: str):
    with pytest.raises(StartError) as caught:
        try_to_start(tmp_path, group_consumer_assignors=value)
    assert str(caught.value) == f"group.consumer.assignors: {told}"
