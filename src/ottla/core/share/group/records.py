"""Records 10 to 15 of `__consumer_offsets`: made from values, and read back into them.

A member is removed by tombstones in the reverse order of its making; a group goes last of all its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ottla.core.coordinator.records import record, tombstone
from ottla.core.groups.modern.group import target_of
from ottla.core.share.group.members import Partitions, ShareGroupMember
from ottla.core.share.group.state_topics import StateTopic, StateTopics
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValueTopicPartitions,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupStatePartitionMetadataValueTopicInfo,
    ShareGroupStatePartitionMetadataValueTopicPartitionsInfo,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMemberValueTopicPartition,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "current_record",
    "epoch_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "state_record",
    "state_topics_of",
    "target_epoch_record",
    "target_record",
    "with_current",
    "with_metadata",
]

VERSION: Final = 0
"""Of all values."""

_TopicPartitions = ShareGroupStatePartitionMetadataValueTopicPartitionsInfo
_TopicInfo = ShareGroupStatePartitionMetadataValueTopicInfo


# --- values to records ------------------------------------------------------------------------------------------------


def member_record(group_id: str, member: ShareGroupMember) -> KeyedRecord:
    value = ShareGroupMemberMetadataValue(
        member.rack_id, member.client_id, member.client_host, tuple(sorted(member.names))
    )
    return record(ShareGroupMemberMetadataKey(group_id, member.member_id), value, VERSION)


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> KeyedRecord:
    return record(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(group_epoch, metadata_hash), VERSION)


def target_epoch_record(group_id: str, assignment_epoch: int, assigned_at_ms: int) -> KeyedRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch, assigned_at_ms)
    return record(ShareGroupTargetAssignmentMetadataKey(group_id), value, VERSION)


def target_record(group_id: str, member_id: str, target: Partitions) -> KeyedRecord:
    entry = ShareGroupTargetAssignmentMemberValueTopicPartition
    value = ShareGroupTargetAssignmentMemberValue(tuple(entry(*each) for each in sorted(target.items())))
    return record(ShareGroupTargetAssignmentMemberKey(group_id, member_id), value, VERSION)


def current_record(group_id: str, member: ShareGroupMember) -> KeyedRecord:
    entry = ShareGroupCurrentMemberAssignmentValueTopicPartitions
    value = ShareGroupCurrentMemberAssignmentValue(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        tuple(entry(*each) for each in sorted(member.assigned.items())),
    )
    return record(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value, VERSION)


def state_record(group_id: str, topics: StateTopics) -> KeyedRecord:
    value = ShareGroupStatePartitionMetadataValue(
        _entries(topics.initializing),
        _entries(topics.initialized),
        tuple(_TopicInfo(*each) for each in sorted(topics.deleting.items())),
    )
    return record(ShareGroupStatePartitionMetadataKey(group_id), value, VERSION)


def _entries(topics: Mapping[bytes, StateTopic]) -> tuple[_TopicPartitions, ...]:
    return tuple(
        _TopicPartitions(topic_id, topics[topic_id].name, tuple(sorted(topics[topic_id].partitions)))
        for topic_id in sorted(topics)
    )


def member_tombstones(group_id: str, member_id: str) -> Sequence[KeyedRecord]:
    return [
        tombstone(key(group_id, member_id))
        for key in (
            ShareGroupCurrentMemberAssignmentKey,
            ShareGroupTargetAssignmentMemberKey,
            ShareGroupMemberMetadataKey,
        )
    ]


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> Sequence[KeyedRecord]:
    return [
        *(tombstone(ShareGroupCurrentMemberAssignmentKey(group_id, each)) for each in member_ids),
        *(tombstone(ShareGroupTargetAssignmentMemberKey(group_id, each)) for each in member_ids),
        tombstone(ShareGroupTargetAssignmentMetadataKey(group_id)),
        *(tombstone(ShareGroupMemberMetadataKey(group_id, each)) for each in member_ids),
        tombstone(ShareGroupStatePartitionMetadataKey(group_id)),
        tombstone(ShareGroupMetadataKey(group_id)),
    ]


# --- records to values ------------------------------------------------------------------------------------------------


def with_metadata(member: ShareGroupMember, value: ShareGroupMemberMetadataValue) -> ShareGroupMember:
    return msgspec.structs.replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=frozenset(value.subscribed_topic_names),
    )


def with_current(member: ShareGroupMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareGroupMember:
    return msgspec.structs.replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=target_of(value.assigned_partitions),
    )


def state_topics_of(value: ShareGroupStatePartitionMetadataValue) -> StateTopics:
    return StateTopics(
        _topics(value.initializing_topics),
        _topics(value.initialized_topics),
        {each.topic_id: each.topic_name for each in value.deleting_topics},
    )


def _topics(entries: Iterable[_TopicPartitions]) -> dict[bytes, StateTopic]:
    return {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions)) for each in entries}
