"""Classic groups: one record for each generation, with all members and their assignments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.wire import WireError
from ottla.wire.keyed import versioned_decoder

__all__ = ["follow_classic"]

_CONSUMER: Final = "consumer"
_read_subscription: Final = versioned_decoder("ConsumerProtocolSubscription")
_read_assignment: Final = versioned_decoder("ConsumerProtocolAssignment")


def follow_classic(group: GroupTracker, _: bytes, value: bytes, read: Callable[[bytes], Any]) -> None:
    """Take a GroupMetadata record."""
    found, state = read(value), group.state
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


def _subscribed(subscription: bytes) -> str:
    try:
        found = _read_subscription(subscription)
    except WireError:
        return ""
    return ",".join(sorted(found.topics))


def _give(group: GroupTracker, member: TrackedMember, assignment: bytes, found: Any) -> None:
    held = member.active
    if assignment != member.assignment:
        held = _partitions(assignment) if found.protocol_type == _CONSUMER else NOTHING
        member.assignment = assignment
    group.current(member, found.generation, 0, (held, NOTHING, NOTHING, NOTHING))


def _partitions(assignment: bytes) -> frozenset[str]:
    """The partitions of an assignment; none if it is not in the consumers' format."""
    if not assignment:
        return NOTHING
    try:
        found = _read_assignment(assignment)
    except WireError:
        return NOTHING
    return frozenset(f"{each.topic}-{number}" for each in found.assigned_partitions for number in each.partitions)
