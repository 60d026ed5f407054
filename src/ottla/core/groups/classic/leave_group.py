"""LeaveGroup: members go, or are sent away by an administrator, who knows only their instance ids."""

from __future__ import annotations

from typing import Final, TypeAlias

from ottla.core.groups.classic.rebalance import maybe_complete_join, prepare
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import ClassicStep
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
)

__all__ = ["leave", "leave_answer", "leave_nobody", "leavers", "remove_member"]

_MANY_FROM: Final = 3
"""Before this version one member leaves, and its error stands for the whole answer."""

Identity: TypeAlias = LeaveGroupRequestMemberIdentity
MemberResponse: TypeAlias = LeaveGroupResponseMemberResponse


def leavers(request: LeaveGroupRequest, api_version: int) -> tuple[Identity, ...]:
    return request.members if api_version >= _MANY_FROM else (Identity(request.member_id),)


def leave_answer(results: tuple[MemberResponse, ...], api_version: int) -> LeaveGroupResponse:
    if api_version >= _MANY_FROM:
        return LeaveGroupResponse(members=results)
    return LeaveGroupResponse(error_code=results[0].error_code)


def leave_nobody(request: LeaveGroupRequest, api_version: int) -> LeaveGroupResponse:
    """The answer of a group that does not exist."""
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    who = leavers(request, api_version)
    return leave_answer(
        tuple(MemberResponse(each.member_id, each.group_instance_id, unknown) for each in who), api_version
    )


def leave(step: ClassicStep, request: LeaveGroupRequest) -> None:
    """A pending member had no part in the group yet, and goes silently. Apache Kafka 4.3.1 rebalances for it, too."""
    version, group = step.context.api_version, step.group
    size = len(group.members)
    results = tuple(_leave(step, each) for each in leavers(request, version))
    step.reply(step.context.token, leave_answer(results, version))
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step)
    elif len(group.members) < size:
        prepare(step, f"{size - len(group.members)} of its members left")


def _leave(step: ClassicStep, who: Identity) -> MemberResponse:
    try:
        remove_member(step, _member_id(step, who))
    except Reject as reject:
        return MemberResponse(who.member_id, who.group_instance_id, reject.code)
    return MemberResponse(who.member_id, who.group_instance_id)


def _member_id(step: ClassicStep, who: Identity) -> str:
    group = step.group
    if not who.member_id:
        named = group.statics.get(who.group_instance_id) if who.group_instance_id is not None else None
        if named is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)
        return named
    if who.member_id not in group.pending_members:
        group.check_member(who.member_id, who.group_instance_id)
    return who.member_id


def remove_member(step: ClassicStep, member_id: str) -> None:
    """Take out a member or a pending one. If it waits for an answer, it is told that it is not known: it may be alive,
    and joins again then."""
    step.set_session(member_id, None)
    member = step.group.members.get(member_id)
    if member is not None:
        step.refuse_join(member, ErrorCode.UNKNOWN_MEMBER_ID, "")
        step.refuse_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
    step.group.remove(member_id)
