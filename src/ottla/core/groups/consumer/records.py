"""Records 3, 5, 6, 7, 8 and 16 of `__consumer_offsets`: made from values, and read back into them.

A group is removed by tombstones in the reverse order of its making: what a member owns, its target, the member itself,
at last the group; a reader never sees a part without what it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ottla.core.coordinator.records import record, tombstone
from ottla.core.groups.assignors import Target
from ottla.core.groups.consumer.members import ConsumerGroupMember, MemberState, Partitions, Subscription
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMemberValueTopicPartition,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "ResolvedRegex",
    "current_record",
    "epoch_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "old_metadata_tombstone",
    "regex_record",
    "regex_tombstone",
    "resolved_regex_of",
    "target_epoch_record",
    "target_record",
    "with_current",
    "with_metadata",
]

VERSION = 0
"""Of all values."""


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matches."""

    topics: frozenset[str]
    topics_version: int
    resolved_at_ms: int


# --- values to records ------------------------------------------------------------------------------------------------


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> KeyedRecord:
    value = ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return record(ConsumerGroupMetadataKey(group_id), value, VERSION)


def old_metadata_tombstone(group_id: str) -> KeyedRecord:
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id))


def member_record(group_id: str, member: ConsumerGroupMember) -> KeyedRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscription.names)),
        subscribed_topic_regex=member.subscription.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return record(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value, VERSION)


def target_record(group_id: str, member_id: str, target: Target) -> KeyedRecord:
    topics = tuple(
        ConsumerGroupTargetAssignmentMemberValueTopicPartition(topic_id, target[topic_id])
        for topic_id in sorted(target)
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    return record(key, ConsumerGroupTargetAssignmentMemberValue(topics), VERSION)


def target_epoch_record(group_id: str, assignment_epoch: int, computed_at_ms: int) -> KeyedRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch, computed_at_ms)
    return record(ConsumerGroupTargetAssignmentMetadataKey(group_id), value, VERSION)


def current_record(group_id: str, member: ConsumerGroupMember) -> KeyedRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_entries(member.assigned),
        partitions_pending_revocation=_entries(member.pending_revocation),
    )
    return record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value, VERSION)


def _entries(partitions: Partitions) -> tuple[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, ...]:
    entries = []
    for topic_id in sorted(partitions):
        epochs = partitions[topic_id]
        ordered = tuple(sorted(epochs))
        entries.append(
            ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
                topic_id, ordered, tuple(epochs[each] for each in ordered)
            )
        )
    return tuple(entries)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> KeyedRecord:
    value = ConsumerGroupRegularExpressionValue(
        tuple(sorted(resolved.topics)), resolved.topics_version, resolved.resolved_at_ms
    )
    return record(ConsumerGroupRegularExpressionKey(group_id, regex), value, VERSION)


def regex_tombstone(group_id: str, regex: str) -> KeyedRecord:
    return tombstone(ConsumerGroupRegularExpressionKey(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> Sequence[KeyedRecord]:
    return (
        tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        tombstone(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    )


def group_tombstones(group_id: str, member_ids: Sequence[str], regexes: Iterable[str]) -> list[KeyedRecord]:
    """What removes a group with all its members."""
    return [
        *(tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, each)) for each in member_ids),
        *(tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, each)) for each in member_ids),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id)),
        *(tombstone(ConsumerGroupMemberMetadataKey(group_id, each)) for each in member_ids),
        *(regex_tombstone(group_id, each) for each in regexes),
        old_metadata_tombstone(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id)),
    ]


# --- records to values ------------------------------------------------------------------------------------------------


def with_metadata(member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
    return msgspec.structs.replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscription=Subscription(frozenset(value.subscribed_topic_names), value.subscribed_topic_regex or ""),
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_current(member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
    return msgspec.structs.replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=_state(value.state),
        assigned=_partitions(value.assigned_partitions, value.member_epoch),
        pending_revocation=_partitions(value.partitions_pending_revocation, value.member_epoch),
    )


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partitions(
    entries: Iterable[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], member_epoch: int
) -> Partitions:
    """Logs before 4.3 do not tell since when; then it counts from the member's epoch."""
    partitions: dict[bytes, Mapping[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs or (member_epoch,) * len(entry.partitions)
        partitions[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=False))
    return partitions


def resolved_regex_of(value: ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
