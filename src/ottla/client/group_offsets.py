"""The offsets that a group keeps: reading, changing and deleting them.

Classic, consumer and streams groups commit one offset for each partition. Share groups have a start offset instead,
which the brokers move; it can be read and changed by other APIs, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.client.client import Answer, Client, always
from ottla.client.errors import ClientError, ProtocolError, ResponseError, UnsupportedVersionError, check
from ottla.client.leaders import by_topic
from ottla.client.metadata import TopicPartition
from ottla.client.share.offsets import describe_offsets
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from ottla.wire.types.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.types.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseOffsetFetchResponseGroup,
)

__all__ = ["Committed", "alter_share", "commit", "committed", "delete_offsets", "share_starts", "try_committed"]

_BY_NAME_VERSION: Final = 9
"""The last version of OffsetCommit and OffsetFetch that names topics; later ones know them by id, so that offsets of a
topic that is gone could not be told apart."""
_MANY_GROUPS_VERSION: Final = 8
NOTHING: Final = -1
AskedTopic = TypeVar("AskedTopic")

PartitionOutcomes = dict[TopicPartition, ResponseError | None]
"""For each partition an error, or None if it went well."""


class Committed(NamedTuple):
    offset: int
    """The next record to process."""
    leader_epoch: int = -1
    metadata: str = ""
    lag: int | None = None
    """What the coordinator says itself of a share group: records that are still to be delivered or acknowledged."""


async def committed(
    client: Client,
    group_id: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, Committed]:
    """The offsets that a group has committed, all or some. `require_stable` waits for transactions that commit some."""
    wanted = None if partitions is None else by_topic(partitions)

    def build(version: int) -> OffsetFetchRequest:
        if version < _MANY_GROUPS_VERSION:
            topics = _asked(wanted, OffsetFetchRequest.OffsetFetchRequestTopic)
            return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable and version >= 7)
        several = _asked(wanted, OffsetFetchRequest.OffsetFetchRequestTopics)
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=several)
        return OffsetFetchRequest(groups=(group,), require_stable=require_stable)

    answer = await client.ask("OffsetFetch", build, coordinator=("group", group_id), max_version=_BY_NAME_VERSION)
    body = answer.of(OffsetFetchResponse)
    group = body.groups[0] if answer.version >= _MANY_GROUPS_VERSION else body
    check(answer.peer, "OffsetFetch", group.error_code, f"group {group_id}")
    found: dict[TopicPartition, Committed] = {}
    for topic in group.topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.partition_index)
            check(answer.peer, "OffsetFetch", each.error_code, f"group {group_id}, {at}")
            if each.committed_offset != NOTHING:
                found[at] = Committed(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
    return found


async def try_committed(
    client: Client, node_id: int, group_ids: Sequence[str]
) -> dict[str, dict[TopicPartition, Committed] | ClientError]:
    """The offsets of many groups that one broker coordinates, or of each why they cannot be had."""

    def build(version: int) -> OffsetFetchRequest:
        if version < _MANY_GROUPS_VERSION:
            raise UnsupportedVersionError(None, f"OffsetFetch v{version}", "it supports only one group per request")
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        return OffsetFetchRequest(groups=tuple(kind(group_id=each, topics=None) for each in group_ids))

    try:
        answer = await client.ask("OffsetFetch", build, broker=node_id, max_version=_BY_NAME_VERSION)
    except UnsupportedVersionError:  # before 3.0 there is one request for each group
        return await _committed_by_one(client, group_ids)
    except ClientError as error:
        return dict.fromkeys(group_ids, error)
    return {each.group_id: _committed_in(answer, each) for each in answer.of(OffsetFetchResponse).groups}


def _committed_in(
    answer: Answer, group: OffsetFetchResponseOffsetFetchResponseGroup
) -> dict[TopicPartition, Committed] | ClientError:
    if group.error_code:
        return ResponseError(answer.peer, "OffsetFetch", group.error_code, f"group {group.group_id}")
    return {
        TopicPartition(topic.name, each.partition_index): Committed(each.committed_offset, each.committed_leader_epoch)
        for topic in group.topics
        for each in topic.partitions
        if not each.error_code and each.committed_offset != NOTHING
    }


async def _committed_by_one(
    client: Client, group_ids: Iterable[str]
) -> dict[str, dict[TopicPartition, Committed] | ClientError]:
    outcomes: dict[str, dict[TopicPartition, Committed] | ClientError] = {}
    for group_id in group_ids:
        try:
            outcomes[group_id] = await committed(client, group_id)
        except ClientError as error:
            outcomes[group_id] = error
    return outcomes


def _asked(
    wanted: Mapping[str, Iterable[TopicPartition]] | None, kind: Callable[..., AskedTopic]
) -> tuple[AskedTopic, ...] | None:
    if wanted is None:
        return None
    return tuple(kind(name=name, partition_indexes=tuple(at.partition for at in each)) for name, each in wanted.items())


async def share_starts(client: Client, group_id: str) -> dict[TopicPartition, Committed]:
    """Where each partition of a share group starts, and what is left of it; nothing for what was never read."""
    return {
        at: Committed(each.start_offset, each.leader_epoch, lag=each.lag)
        for at, each in (await describe_offsets(client, group_id)).items()
        if each.start_offset is not None
    }


async def commit(client: Client, group_id: str, offsets: Mapping[TopicPartition, int | Committed]) -> PartitionOutcomes:
    """Commit offsets as somebody who is no member: this goes well only while the group has no members."""
    kind = OffsetCommitRequest.OffsetCommitRequestPartition
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name,
                partitions=tuple(kind(at.partition, *_of(offsets[at])[:3]) for at in partitions),
            )
            for name, partitions in by_topic(offsets).items()
        ),
    )
    answer = await client.ask(
        "OffsetCommit", always(request), coordinator=("group", group_id), max_version=_BY_NAME_VERSION
    )
    said = {
        TopicPartition(topic.name, each.partition_index): (each.error_code, None)
        for topic in answer.of(OffsetCommitResponse).topics
        for each in topic.partitions
    }
    return _outcomes(answer, "OffsetCommit", group_id, offsets, said)


async def alter_share(client: Client, group_id: str, starts: Mapping[TopicPartition, int]) -> PartitionOutcomes:
    """Let a share group without members start elsewhere."""
    kind = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=tuple(
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(
                name, tuple(kind(at.partition, starts[at]) for at in partitions)
            )
            for name, partitions in by_topic(starts).items()
        ),
    )
    answer = await client.ask("AlterShareGroupOffsets", always(request), coordinator=("group", group_id))
    body = answer.of(AlterShareGroupOffsetsResponse)
    check(answer.peer, "AlterShareGroupOffsets", body.error_code, f"group {group_id}", body.error_message)
    said = {
        TopicPartition(topic.topic_name, each.partition_index): (each.error_code, each.error_message)
        for topic in body.responses
        for each in topic.partitions
    }
    return _outcomes(answer, "AlterShareGroupOffsets", group_id, starts, said)


async def delete_offsets(client: Client, group_id: str, partitions: Iterable[TopicPartition]) -> PartitionOutcomes:
    """Forget what a group has committed for some partitions; members must not be subscribed to their topics."""
    wanted = list(dict.fromkeys(partitions))
    kind = OffsetDeleteRequest.OffsetDeleteRequestPartition
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequest.OffsetDeleteRequestTopic(name, tuple(kind(at.partition) for at in each))
            for name, each in by_topic(wanted).items()
        ),
    )
    answer = await client.ask("OffsetDelete", always(request), coordinator=("group", group_id))
    body = answer.of(OffsetDeleteResponse)
    check(answer.peer, "OffsetDelete", body.error_code, f"group {group_id}")
    said = {
        TopicPartition(topic.name, each.partition_index): (each.error_code, None)
        for topic in body.topics
        for each in topic.partitions
    }
    return _outcomes(answer, "OffsetDelete", group_id, wanted, said)


def _of(value: int | Committed) -> Committed:
    return Committed(value) if isinstance(value, int) else value


def _outcomes(
    answer: Answer,
    api: str,
    group_id: str,
    wanted: Iterable[TopicPartition],
    said: Mapping[TopicPartition, tuple[int, str | None]],
) -> PartitionOutcomes:
    outcomes: PartitionOutcomes = {}
    for at in wanted:
        if at not in said:
            raise ProtocolError(answer.peer, f"{api}Response v{answer.version} does not contain {at}")
        code, message = said[at]
        outcomes[at] = ResponseError(answer.peer, api, code, f"group {group_id}, {at}", message) if code else None
    return outcomes
