"""DescribeShareGroupOffsets (90): start offsets and lag of share groups (KIP-932, KIP-1226).

Versions 0 and 1: 1 has the lag. The offset is the last written one, which may be below the leader's offset in memory. A
client requests all partitions with state, or some by name; the offset of a partition without state is -1, without
error. A topic that the client may not describe is left out, or has an error if the client named it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.network.scatter_gather import scatter_gather
from ottla.broker.share.summaries import SummaryTopic, summarize
from ottla.core.share.group.group_description import ListShareState
from ottla.core.share.group.settings import is_served
from ottla.core.share.group.state_topics import StateTopic
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup as _AskedGroup,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic as _AskedTopic,
)
from ottla.wire.types.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup as _Group,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition as _Partition,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic as _Topic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

API_KEY: Final = 90
VERSIONS: Final = (0, 1)

_Done = Callable[[_Group], None]


def handle(node: ShareGroups, request: Request) -> DelayedResponse:
    def ask(group: _AskedGroup, done: _Done) -> None:
        if not is_served(node.groups.world):
            done(_Group(group.group_id, error_code=ErrorCode.UNSUPPORTED_VERSION))
        elif not node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            done(_Group(group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif group.topics is None:
            _ask_all(node, request, group.group_id, done)
        else:
            _ask_named(node, request, group.group_id, group.topics, done)

    return scatter_gather(
        request.body.groups, ask, lambda groups: DescribeShareGroupOffsetsResponse(groups=tuple(groups))
    )


def refuse(request: Request, code: int, message: str | None) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=tuple(_Group(each.group_id, error_code=code, error_message=message) for each in request.body.groups)
    )


def _ask_all(node: ShareGroups, request: Request, group_id: str, done: _Done) -> None:
    """Describe all partitions with state, which the group's coordinator knows."""

    def listed(found: Mapping[bytes, StateTopic] | _Group) -> None:
        if isinstance(found, _Group):
            done(found)
            return
        asked = [
            SummaryTopic(topic.name, topic_id, sorted(topic.partitions))
            for topic_id, topic in sorted(found.items(), key=lambda each: each[1].name)
            if _sees(node, request, topic.name)
        ]
        summarize(node, node.share.persister, group_id, asked, lambda topics: done(_Group(group_id, tuple(topics))))

    node.groups.ask(
        request,
        group_id,
        ListShareState(group_id),
        listed,
        refuse=lambda code, message: _Group(group_id, error_code=code, error_message=message or code.meaning),
    )


def _ask_named(
    node: ShareGroups, request: Request, group_id: str, topics: tuple[_AskedTopic, ...], done: _Done
) -> None:
    """Ask the share coordinators, which have the state; the group need not exist."""
    seen = {each.topic_name: _sees(node, request, each.topic_name) for each in topics}
    asked = []
    for topic in topics:
        found = node.image.topic(topic.topic_name) if seen[topic.topic_name] else None
        if found is not None:
            asked.append(SummaryTopic(topic.topic_name, found.topic_id, topic.partitions))

    def finish(described: list[_Topic]) -> None:
        known = {each.topic_name: each for each in described}
        done(_Group(group_id, tuple(known.get(each.topic_name) or _absent(each, seen) for each in topics)))

    summarize(node, node.share.persister, group_id, asked, finish)


def _sees(node: ShareGroups, request: Request, topic: str) -> bool:
    return node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, topic)


def _absent(asked: _AskedTopic, seen: Mapping[str, bool]) -> _Topic:
    """A topic that does not exist, or that the client may not describe."""
    code = ErrorCode.NONE if seen[asked.topic_name] else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    message = code.meaning if code else None
    partitions = tuple(_Partition(each, -1, error_code=code, error_message=message) for each in asked.partitions)
    return _Topic(asked.topic_name, partitions=partitions)
