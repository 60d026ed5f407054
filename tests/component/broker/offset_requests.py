"""Offsets of groups: committed, fetched, deleted."""

from __future__ import annotations

from itertools import count
from typing import Any

from ottla.broker.network.request import Request
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import FindCoordinatorRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient, Topic

NONE = ErrorCode.NONE
NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
NOWHERE = Topic("nowhere", b"N" * 16)
_serial = count()
Found = tuple[int, int, str, ErrorCode]
"""Offset, leader epoch, metadata, error."""


def new_group(client: RawClient) -> str:
    """A name nobody has used, at a coordinator that is there: Apache Kafka needs a moment for the first."""
    name = f"group-{next(_serial)}"
    for _ in range(READY_ATTEMPTS):
        (found,) = client.ask(FindCoordinatorRequest(coordinator_keys=(name,)), 6).coordinators
        if found.error_code == NONE and fetch(client, name, None, version=8).error_code not in NOT_READY:
            return name
    raise AssertionError(f"{name} has no coordinator")


def commit(
    client: RawClient, group: str, *offsets: tuple[Any, ...], version: int = 9, **fields: Any
) -> dict[tuple[str, int], ErrorCode]:
    """Offsets are topic, partition, offset, metadata, leader epoch; the answer is a code for each partition."""
    answer = client.ask(commit_request(group, *offsets, **fields), version)
    names = {topic.topic_id: topic.name for topic, *_ in offsets}
    return {
        (topic.name or names[topic.topic_id], each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def commit_request(group: str, *offsets: tuple[Any, ...], **fields: Any) -> OffsetCommitRequest:
    kind = OffsetCommitRequest
    topics: dict[Topic, list[Any]] = {}
    for topic, partition, offset, *rest in offsets:
        metadata, epoch = (*rest, *("", -1)[len(rest) :])
        topics.setdefault(topic, []).append(kind.OffsetCommitRequestPartition(partition, offset, epoch, metadata))
    return kind(
        group,
        topics=tuple(
            kind.OffsetCommitRequestTopic(topic.name, topic.topic_id, tuple(each)) for topic, each in topics.items()
        ),
        **fields,
    )


def fetch_groups(
    client: RawClient, groups: dict[str, dict[Topic, list[int]] | None], version: int, **fields: Any
) -> Any:
    kind = OffsetFetchRequest
    if version < 8:
        ((group, topics),) = groups.items()
        asked = topics and tuple(kind.OffsetFetchRequestTopic(each.name, tuple(topics[each])) for each in topics)
        return client.ask(kind(group, asked, **fields), version)
    return client.ask(
        kind(
            groups=tuple(
                kind.OffsetFetchRequestGroup(
                    group,
                    topics=topics
                    and tuple(
                        kind.OffsetFetchRequestTopics(each.name, each.topic_id, tuple(topics[each])) for each in topics
                    ),
                )
                for group, topics in groups.items()
            ),
            **fields,
        ),
        version,
    )


def fetch(client: RawClient, group: str, topics: dict[Topic, list[int]] | None, version: int = 9, **fields: Any) -> Any:
    """The answer for one group, whatever the version."""
    answer = fetch_groups(client, {group: topics}, version, **fields)
    return answer if version < 8 else answer.groups[0]


def found(answer: Any) -> dict[tuple[Any, int], Found]:
    """By topic, as the version names it, and partition."""
    return {
        (getattr(topic, "name", "") or topic.topic_id, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            ErrorCode(each.error_code),
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def delete(client: RawClient, group: str, topics: dict[str, list[int]]) -> Any:
    kind = OffsetDeleteRequest
    asked = tuple(
        kind.OffsetDeleteRequestTopic(name, tuple(map(kind.OffsetDeleteRequestPartition, indexes)))
        for name, indexes in topics.items()
    )
    return client.ask(kind(group, asked), 0)


class Guard:
    """Refuses what it is told to."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str, str]] = set()

    def __call__(self, request: Request, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (operation.name, kind.name, name) not in self.denied
