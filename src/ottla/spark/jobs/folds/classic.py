"""Classic groups: one record for each generation, with all members and their assignments."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.spark.jobs.record_json import json_reader
from ottla.wire import WireError
from ottla.wire.keyed import decode_versioned
from ottla.wire.types.group_classic import GroupMetadataValue

__all__ = ["follow_classic"]

_CONSUMER: Final = "consumer"


_read: Final = json_reader(GroupMetadataValue, only="protocol_type generation protocol current_state_timestamp members")


def follow_classic(group: GroupTracker, _: str, value: str | None) -> None:
    if value is None:
        group.delete()
        return
    found = _read(value)
    state = group.state
    _membership(group, found)
    if found.protocol and state.protocol and found.protocol != state.protocol:
        group.cause("assignor_changed")
    state.protocol = found.protocol or state.protocol
    if state.epoch == NOBODY and not found.members:
        group.adopt(found.generation, found.generation)  # it is new, or has been empty since before the history began
    elif found.generation != state.epoch:
        since_ms = found.current_state_timestamp
        group.bump_epoch(found.generation, since_ms if 0 < since_ms <= state.ts else state.ts)
        group.target(found.generation)
    for each in found.members:
        _give(group, state.members[each.member_id], each.assignment, found)


def _membership(group: GroupTracker, found: Any) -> None:
    here = {each.member_id for each in found.members}
    for gone in [each for each in group.state.members if each not in here]:
        group.leave(gone)
    for each in found.members:
        subscribed = _subscribed(each.subscription) if found.protocol_type == _CONSUMER else ""
        member = group.state.members.get(each.member_id)
        if member is None:
            member = TrackedMember(each.member_id, group.state.ts, each.client_id, each.client_host)
            member.instance = each.group_instance_id
            member.rebalance_timeout_ms = each.rebalance_timeout if each.rebalance_timeout >= 0 else None
            member.subscribed = subscribed
            group.join(member)
        else:
            group.subscribe(member, subscribed)


def _subscribed(subscription: str) -> str:
    try:
        found = decode_versioned("ConsumerProtocolSubscription", b64decode(subscription)).message
    except WireError:
        return ""
    return ",".join(sorted(found.topics))


def _give(group: GroupTracker, member: TrackedMember, assignment: str, found: Any) -> None:
    held = member.active
    if assignment != member.assignment:
        held = _partitions(assignment) if found.protocol_type == _CONSUMER else NOTHING
        member.assignment = assignment
    group.current(member, found.generation, 0, held)


def _partitions(assignment: str) -> frozenset[str]:
    """The partitions of an assignment; none if it is not in the consumers' format."""
    if not assignment:
        return NOTHING
    try:
        found = decode_versioned("ConsumerProtocolAssignment", b64decode(assignment)).message
    except WireError:
        return NOTHING
    return frozenset(f"{each.topic}-{number}" for each in found.assigned_partitions for number in each.partitions)
