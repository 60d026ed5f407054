"""Members and administrators of share groups over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.wire.types import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    UpdateFeaturesRequest,
)
from tests.component.broker.raw_client import RawClient, RunningNode, Topic
from tests.component.broker.share.share_members import GROUP_RESOURCE

SAFE_DOWNGRADE = 2
UPGRADE = 1
LEAVE = -1
WAIT_MS = 60_000
"""How long the first fetch of a share partition may wait, for it must be loaded."""


def beat(group: str, member: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def join(group: str, member: str, *names: str, **fields: Any) -> ShareGroupHeartbeatRequest:
    return beat(group, member, 0, subscribed_topic_names=names, **fields)


def partitions(answer: Any) -> dict[bytes, tuple[int, ...]]:
    """What a heartbeat's answer assigns."""
    assert answer.error_code == 0, answer
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


def describe(client: RawClient, *groups: str, **fields: Any) -> Any:
    return client.ask(ShareGroupDescribeRequest(groups, **fields), 1).groups


def offsets(client: RawClient, group: str, topics: Mapping[str, Sequence[int]] | None = None, version: int = 1) -> Any:
    """The group of a DescribeShareGroupOffsets."""
    kind = DescribeShareGroupOffsetsRequest
    asked = None
    if topics is not None:
        asked = tuple(kind.DescribeShareGroupOffsetsRequestTopic(name, tuple(each)) for name, each in topics.items())
    return client.ask(kind((kind.DescribeShareGroupOffsetsRequestGroup(group, asked),)), version).groups[0]


def starts_and_lags(group: Any) -> dict[tuple[str, int], tuple[int, int]]:
    assert group.error_code == 0, group
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag)
        for topic in group.topics
        for each in topic.partitions
    }


def alter(client: RawClient, group: str, topic: Topic, *starts: int) -> Any:
    """Set the offsets of the partitions from 0 on."""
    kind = AlterShareGroupOffsetsRequest
    entries = tuple(kind.AlterShareGroupOffsetsRequestPartition(*each) for each in enumerate(starts))
    return client.ask(kind(group, (kind.AlterShareGroupOffsetsRequestTopic(topic.name, entries),)), 0)


def forget(client: RawClient, group: str, *names: str) -> Any:
    kind = DeleteShareGroupOffsetsRequest
    return client.ask(kind(group, tuple(kind.DeleteShareGroupOffsetsRequestTopic(name) for name in names)), 0)


def set_config(client: RawClient, group: str, name: str, value: str) -> int:
    """The error."""
    kind = IncrementalAlterConfigsRequest
    resource = kind.AlterConfigsResource(GROUP_RESOURCE, group, (kind.AlterableConfig(name, 0, value),))
    return int(client.ask(kind((resource,)), 1).responses[0].error_code)


def set_share_version(running: RunningNode, level: int) -> None:
    kind = UpdateFeaturesRequest
    upgrade_type = UPGRADE if level else SAFE_DOWNGRADE
    body = kind(60_000, (kind.FeatureUpdateKey("share.version", level, upgrade_type=upgrade_type),))
    answers: list[Any] = []
    running.change(lambda: running.node.controller_channel.send(body, 2, answers.append))
    while not answers:
        running.change(lambda: None)
    assert answers[0].error_code == 0, answers
