"""Where a share group starts in its partitions, and what is left of them.

The group's coordinator tells what has been kept. That trails what the partitions' leaders have in memory by one write,
but the lag is right, since finished records behind the start are counted along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import ClientError, ResponseError, check
from ottla.client.metadata import TopicPartition
from ottla.wire.types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition as _Partition,
)

__all__ = ["ShareOffset", "delete_offsets", "describe_offsets", "try_describe_offsets"]


class ShareOffset(NamedTuple):
    topic_id: bytes
    start_offset: int | None
    """None where the group has not begun."""
    leader_epoch: int
    lag: int | None
    """Records that are still to be delivered or acknowledged; None where it is not known (before Kafka 4.2)."""


async def describe_offsets(client: Client, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """All partitions that a share group knows; none if there is no such group."""
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(group,))
    api = "DescribeShareGroupOffsets"
    answer = await client.ask(api, always(request), coordinator=("group", group_id))
    (described,) = answer.of(DescribeShareGroupOffsetsResponse).groups
    check(answer.peer, api, described.error_code, f"group {group_id}", described.error_message)
    found: dict[TopicPartition, ShareOffset] = {}
    for topic in described.topics:
        for each in topic.partitions:
            at = TopicPartition(topic.topic_name, each.partition_index)
            check(answer.peer, api, each.error_code, f"group {group_id}, {at}", each.error_message)
            found[at] = _share_offset(topic.topic_id, each)
    return found


async def try_describe_offsets(
    client: Client, node_id: int, group_ids: Sequence[str]
) -> dict[str, dict[TopicPartition, ShareOffset] | ClientError]:
    """The same of many groups that one broker coordinates, or of each why it cannot be had."""
    kind = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(groups=tuple(kind(group_id=each, topics=None) for each in group_ids))
    api = "DescribeShareGroupOffsets"
    try:
        answer = await client.ask(api, always(request), broker=node_id)
    except ClientError as error:
        return dict.fromkeys(group_ids, error)
    outcomes: dict[str, dict[TopicPartition, ShareOffset] | ClientError] = {}
    for group in answer.of(DescribeShareGroupOffsetsResponse).groups:
        outcomes[group.group_id] = {
            TopicPartition(topic.topic_name, each.partition_index): _share_offset(topic.topic_id, each)
            for topic in group.topics
            for each in topic.partitions
            if not each.error_code
        }
        if group.error_code:
            about = f"group {group.group_id}"
            outcomes[group.group_id] = ResponseError(answer.peer, api, group.error_code, about, group.error_message)
    return outcomes


def _share_offset(topic_id: bytes, each: _Partition) -> ShareOffset:
    start = None if each.start_offset < 0 else each.start_offset
    return ShareOffset(topic_id, start, each.leader_epoch, None if each.lag < 0 else each.lag)


async def delete_offsets(client: Client, group_id: str, topics: Iterable[str]) -> dict[str, ResponseError | None]:
    """Let a group without members forget topics: it begins anew with them. An error, or None, for each topic."""
    kind = DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=tuple(kind(name) for name in topics))
    api = "DeleteShareGroupOffsets"
    answer = await client.ask(api, always(request), coordinator=("group", group_id))
    body = answer.of(DeleteShareGroupOffsetsResponse)
    check(answer.peer, api, body.error_code, f"group {group_id}", body.error_message)
    outcomes: dict[str, ResponseError | None] = {}
    for each in body.responses:
        about = f"group {group_id}, topic {each.topic_name}"
        error = ResponseError(answer.peer, api, each.error_code, about, each.error_message)
        outcomes[each.topic_name] = error if each.error_code else None
    return outcomes
