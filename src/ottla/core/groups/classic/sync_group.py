"""SyncGroup: the leader hands in its assignment, the others fetch theirs; and Heartbeat.

The group is stable when the assignment is written. Whoever asks before that waits.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.core.coordinator.append_errors import as_coordinator_error
from ottla.core.coordinator.contract import Context, Outcome
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember
from ottla.core.groups.classic.rebalance import prepare, send_back
from ottla.core.groups.classic.records import write_group
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import FAMILY, ClassicStep
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["Assigned", "check_request", "end_assigning", "heartbeat", "sync"]

log = logging.getLogger(__name__)

_PROTOCOL_REQUIRED_FROM: Final = 5


class Assigned(NamedTuple):
    """The leader's assignment is being written."""

    family: str
    group_id: str
    generation: int
    assignments: Mapping[str, bytes]


def check_request(request: SyncGroupRequest, api_version: int) -> None:
    """From version 5 on a member says which protocol it believes in. This comes before anything else."""
    if api_version >= _PROTOCOL_REQUIRED_FROM and None in (request.protocol_type, request.protocol_name):
        raise Reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def sync(step: ClassicStep, request: SyncGroupRequest) -> None:
    group = step.group
    member = _check(group, request)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise Reject(ErrorCode.REBALANCE_IN_PROGRESS)
    _note_sync(step, member)
    if group.state is GroupState.STABLE:
        step.reply(step.context.token, _assignment(group, member))
        return
    step.park_sync(member)
    if group.is_leader(member.member_id) and not group.is_assignment_pending:
        _assign(step, {each.member_id: each.assignment for each in request.assignments})


def _check(group: ClassicGroup, request: SyncGroupRequest) -> ClassicGroupMember:
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Reject(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        raise Reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return member


def _differ(given: str | None, ours: str | None) -> bool:
    """Whoever says nothing agrees."""
    return given is not None and ours is not None and given != ours


def _note_sync(step: ClassicStep, member: ClassicGroupMember) -> None:
    step.group.pending_syncs.discard(member.member_id)
    if not step.group.pending_syncs:
        step.set_sync_timer(None)


def _assignment(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def _assign(step: ClassicStep, assignments: Mapping[str, bytes]) -> None:
    """Write the group with its assignment. What is for others than its members is overlooked."""
    group = step.group
    forgotten = group.members.keys() - assignments.keys()
    if forgotten:
        log.warning("group %s: the leader assigned nothing to %s", group.group_id, ", ".join(sorted(forgotten)))
    step.records.append(write_group(group, assignments))
    step.after = Assigned(FAMILY, group.group_id, group.generation, assignments)
    group.is_assignment_pending = True


def end_assigning(step: ClassicStep, written: Assigned, outcome: Outcome) -> None:
    """The assignment is written, or cannot be. If a rebalance has begun meanwhile, it does not matter any more."""
    group = step.group
    if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != written.generation:
        return
    if outcome.is_ok:
        _hand_out(step, written.assignments)
    else:
        log.warning("group %s: the assignment cannot be written: %s", group.group_id, outcome.error.name)
        send_back(step, as_coordinator_error(outcome.error))
        prepare(step, f"the assignment could not be written ({outcome.error.name})")


def _hand_out(step: ClassicStep, assignments: Mapping[str, bytes]) -> None:
    group = step.group
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if step.answer_sync(member, _assignment(group, member)):
            step.start_session(member)
    group.move_to(GroupState.STABLE, step.context.wall_ms)


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, context: Context) -> ErrorCode:
    """A sign of life. While a rebalance is prepared the answer says that it is time to join again; after that nothing,
    since a member may send heartbeats between the answers to JoinGroup and SyncGroup."""
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise Reject(ErrorCode.ILLEGAL_GENERATION)
    member.renew(context.now_ms)
    is_joining = group.state is GroupState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if is_joining else ErrorCode.NONE
