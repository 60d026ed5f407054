"""A classic group as the record that Kafka keeps of it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.core.coordinator.records import record
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember, Protocol, Terms
from ottla.core.groups.classic.states import GroupState
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import GroupMetadataKey, GroupMetadataValue, GroupMetadataValueMemberMetadata

__all__ = ["group_of", "write_empty", "write_group"]

_VALUE_VERSION: Final = 3
_UNKNOWN_TIME: Final = -1
_UNKNOWN_TIMEOUT: Final = -1


def write_empty(group: ClassicGroup) -> KeyedRecord:
    """The first record of a group, whatever its first member is like."""
    return _write(group, GroupMetadataValue("", 0, None, None, _since(group)))


def write_group(group: ClassicGroup, assignments: Mapping[str, bytes]) -> KeyedRecord:
    """The group with all members. Those who are assigned nothing have empty bytes."""
    members = tuple(_stored(each, group, assignments.get(each.member_id, b"")) for each in group.members.values())
    value = GroupMetadataValue(
        group.protocol_type, group.generation, group.protocol_name, group.leader_id, _since(group), members
    )
    return _write(group, value)


def _write(group: ClassicGroup, value: GroupMetadataValue) -> KeyedRecord:
    group.writing = value
    return record(GroupMetadataKey(group.group_id), value, _VALUE_VERSION)


def _since(group: ClassicGroup) -> int:
    return _UNKNOWN_TIME if group.since_ms is None else group.since_ms


def _stored(member: ClassicGroupMember, group: ClassicGroup, assignment: bytes) -> GroupMetadataValueMemberMetadata:
    return GroupMetadataValueMemberMetadata(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(group.protocol_name),
        assignment,
    )


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record of any version tells of. It may have been written by others, so nothing is taken for
    granted: a leader that is no member is replaced."""
    since_ms = None if value.current_state_timestamp == _UNKNOWN_TIME else value.current_state_timestamp
    group = ClassicGroup(group_id, since_ms)
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    for member in value.members:
        group.add(_member_of(member, value.protocol or ""), value.protocol_type)
    if value.leader in group.members:
        group.leader_id = value.leader
    group.note_subscriptions()
    group.stored = value
    return group


def _member_of(stored: GroupMetadataValueMemberMetadata, protocol_name: str) -> ClassicGroupMember:
    """Only what it says for the chosen protocol is on record; for others it would have to join again."""
    is_known = stored.rebalance_timeout != _UNKNOWN_TIMEOUT
    terms = Terms(
        stored.rebalance_timeout if is_known else stored.session_timeout,
        stored.session_timeout,
        (Protocol(protocol_name, stored.subscription),),
    )
    who = stored.member_id, stored.group_instance_id, stored.client_id, stored.client_host
    return ClassicGroupMember(*who, terms, stored.assignment)
