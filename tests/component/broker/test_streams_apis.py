"""StreamsGroupHeartbeat and StreamsGroupDescribe over a real node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.core.metadata.image import GROUP
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    StreamsGroupDescribeRequest,
)
from tests.component.broker.raw_client import RunningNode, running_node
from tests.component.broker.streams_requests import _Request, join, topology


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    directory = tmp_path_factory.mktemp("streams")
    with running_node(directory, ManualClock(), group_streams_initial_rebalance_delay_ms=0) as node:
        yield node


def test_a_member_gets_its_tasks_and_leaves(running: RunningNode):
    source = running.client.topic(partitions=3).name
    answer = running.client.ask(join("g1", "A", topology(source)), 0)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "A", 2)
    assert [(each.subtopology_id, each.partitions) for each in answer.active_tasks] == [("0", (0, 1, 2))]
    assert (answer.heartbeat_interval_ms, answer.task_offset_interval_ms) == (5_000, 60_000)
    steady = running.client.ask(_Request("g1", "A", 2, 0), 0)
    assert (steady.member_epoch, steady.active_tasks, steady.status) == (2, None, ())
    assert running.client.ask(_Request("g1", "A", -1), 0).member_epoch == -1
    described = describe(running, "g1")
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Empty", 3, 3)


def describe(running: RunningNode, group_id: str, version: int = 1, **fields: Any) -> Any:
    (row,) = running.client.ask(StreamsGroupDescribeRequest((group_id,), **fields), version).groups
    return row


def test_internal_topics_are_there_before_the_answer(running: RunningNode):
    source = running.client.topic(partitions=3).name
    answer = running.client.ask(join("g2", "A", topology(source, changelog="g2-store-changelog")), 1)
    assert [each.status_code for each in answer.status] == [3]
    assert answer.heartbeat_interval_ms == 100
    request = MetadataRequest(topics=(MetadataRequest.MetadataRequestTopic(name="g2-store-changelog"),))
    (topic,) = running.client.ask(request, 12).topics
    assert (topic.error_code, len(topic.partitions)) == (0, 3)
    resource = DescribeConfigsRequest.DescribeConfigsResource(2, "g2-store-changelog", ("cleanup.policy",))
    (result,) = running.client.ask(DescribeConfigsRequest((resource,)), 4).results
    assert result.configs[0].value == "compact"
    running.advance(1_000)
    answer = running.client.ask(_Request("g2", "A", answer.member_epoch, 0), 1)
    assert [each.partitions for each in answer.active_tasks] == [(0, 1, 2)]
    assert describe(running, "g2").topology.subtopologies[0].state_changelog_topics[0].partitions == 3


def test_a_group_that_waits_gets_its_tasks_when_the_delay_is_over(tmp_path: Path):
    with running_node(tmp_path, ManualClock()) as running:
        source = running.client.topic(partitions=2).name
        answer = running.client.ask(join("g", "A", topology(source)), 0)
        assert ([each.status_code for each in answer.status], answer.heartbeat_interval_ms) == ([5], 3_005)
        running.advance(3_005)
        answer = running.client.ask(_Request("g", "A", 1, 0), 0)
        assert [each.partitions for each in answer.active_tasks] == [(0, 1)]


def test_a_group_is_there_after_a_restart(tmp_path: Path):
    settings = {"group_streams_initial_rebalance_delay_ms": 0}
    with running_node(tmp_path, **settings) as running:
        source = running.client.topic(partitions=2).name
        running.client.ask(join("g", "A", topology(source)), 0)
        before = describe(running, "g")
    with running_node(tmp_path, **settings) as running:
        assert describe(running, "g") == before
        assert running.client.ask(_Request("g", "A", 2, 0), 0).error_code == 0


def test_groups_that_cannot_be_described(running: RunningNode):
    row = describe(running, "nobody", 0)
    assert (row.error_code, row.group_state, row.topology, row.members) == (69, "", None, ())
    assert describe(running, " ").error_code == ErrorCode.INVALID_GROUP_ID


def test_what_one_may_do_is_told_when_asked(running: RunningNode):
    source = running.client.topic(partitions=1).name
    running.client.ask(join("g3", "A", topology(source)), 1)
    assert describe(running, "g3").authorized_operations == -(1 << 31)
    assert describe(running, "g3", include_authorized_operations=True).authorized_operations > 0
    row = describe(running, "g3", include_topology_description=True)
    assert (row.topology_description, row.topology_description_status, row.assignor_name) == (None, 1, "sticky")


def test_rights(tmp_path: Path):
    denied: set[tuple[Operation, ResourceType, str]] = set()

    def authorize(request: object, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return (operation, resource_type, name) not in denied

    with running_node(tmp_path, ManualClock(), authorize, group_streams_initial_rebalance_delay_ms=0) as running:
        source = running.client.topic(partitions=1).name
        declared = topology(source, changelog="c")
        denied.add((Operation.READ, ResourceType.GROUP, "g"))
        assert running.client.ask(join("g", "A", declared), 1).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        denied.clear()
        denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "c"))
        assert running.client.ask(join("g", "A", declared), 1).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        denied.clear()
        denied.update(
            ((Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"), (Operation.CREATE, ResourceType.TOPIC, "c"))
        )
        (status,) = running.client.ask(join("g", "A", declared), 1).status
        assert (status.status_code, "not allowed to create c" in status.status_detail) == (3, True)
        denied.add((Operation.DESCRIBE, ResourceType.GROUP, "h"))
        rows = running.client.ask(StreamsGroupDescribeRequest(("g", "h")), 1).groups
        assert [(each.group_id, each.error_code) for each in rows] == [("h", 30), ("g", 0)]
        denied.add((Operation.DESCRIBE, ResourceType.TOPIC, source))
        assert (describe(running, "g").error_code, describe(running, "g").members) == (29, ())


def test_switched_off(tmp_path: Path):
    with running_node(tmp_path, group_coordinator_rebalance_protocols="classic,consumer") as running:
        assert running.client.ask(join("g", "A", topology("t")), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(running, "g").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_topology_of_ten_megabytes_is_refused_and_nothing_else_breaks(running: RunningNode):
    names = tuple(f"{each:0200}" for each in range(50_000))
    huge = _Request.Topology(0, (_Request.Subtopology("0", names),))
    answer = running.client.ask(join("huge", "A", huge), 0)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert describe(running, "huge").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    source = running.client.topic(partitions=1).name
    assert running.client.ask(join("small", "A", topology(source)), 0).error_code == 0


def test_a_group_is_given_the_assignor_that_it_asks_for(running: RunningNode):
    source = running.client.topic(partitions=2).name
    changelog = running.client.topic(partitions=2).name
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        GROUP,
        "warm",
        (IncrementalAlterConfigsRequest.AlterableConfig("streams.assignor.name", 0, "highly_available"),),
    )
    [altered] = running.client.ask(IncrementalAlterConfigsRequest((resource,)), 1).responses
    assert altered.error_code == 0
    reports: Any = {"task_offsets": (), "task_end_offsets": ()}
    running.client.ask(join("warm", "A", topology(source, changelog=changelog), **reports), 1)
    running.advance(5_000)
    answer = running.client.ask(join("warm", "B", topology(source, changelog=changelog), **reports), 1)
    assert (answer.active_tasks, [each.partitions for each in answer.warmup_tasks]) == ((), [(1,)])
    [described] = running.client.ask(StreamsGroupDescribeRequest(("warm",)), 1).groups
    assert described.assignor_name == "highly_available"
