"""JoinGroup: somebody enters the group or takes part in its next rebalance.

Who has no member id yet gets one. From version 4 on (KIP-394) a dynamic member is sent back with it first, so that a
client that gives up and tries again does not fill the group with members that nobody is behind; until it comes back
it is *pending*, for one session time-out.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ottla.core.coordinator.contract import Context
from ottla.core.groups.classic import static_members
from ottla.core.groups.classic.leave_group import remove_member
from ottla.core.groups.classic.member import ClassicGroupMember, Parked, Terms, terms_of
from ottla.core.groups.classic.rebalance import maybe_complete_join, rebalance
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import ClassicStep, join_answer
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.join_group import JoinGroupRequest

__all__ = ["NEW_MEMBER_JOIN_TIMEOUT_MS", "check_request", "join"]

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""A new member that waits this long for the end of a rebalance is dropped: whoever is behind it has tried again."""
_MEMBER_ID_REQUIRED_FROM: Final = 4
_REASON_MAX: Final = 255


def check_request(request: JoinGroupRequest, context: Context) -> None:
    """Reject what no group would take."""
    settings = context.world.settings
    if not request.group_id:
        raise Reject(ErrorCode.INVALID_GROUP_ID)
    lowest_ms, highest_ms = settings["group.min.session.timeout.ms"], settings["group.max.session.timeout.ms"]
    if not lowest_ms <= request.session_timeout_ms <= highest_ms:
        raise Reject(ErrorCode.INVALID_SESSION_TIMEOUT)


def join(step: ClassicStep, request: JoinGroupRequest) -> None:
    """Decide on a join; the group may be a new one."""
    group = step.group
    if not _has_room(step, request.member_id):
        remove_member(step, request.member_id)
        step.reply_join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        maybe_complete_join(step)
    elif not group.supports(request.protocol_type, (each.name for each in request.protocols)):
        step.reply_join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif not request.member_id:
        _join_unknown(step, request)
    elif request.member_id in group.pending_members:
        _join_pending(step, request)
    else:
        _join_known(step, request)


def _has_room(step: ClassicStep, member_id: str) -> bool:
    """Members may stay, new ones come up to the limit. While a rebalance is prepared those count who have joined: the
    limit may have been lowered, and then the last to come are out."""
    group, size_max = step.group, step.setting("group.max.size")
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_join_count < size_max
    return member is not None or len(group.members) < size_max


def _join_unknown(step: ClassicStep, request: JoinGroupRequest) -> None:
    """Somebody without a member id."""
    group = step.group
    new_id = _new_member_id(step.context, request.group_instance_id)
    if request.group_instance_id is not None:
        old_id = group.statics.get(request.group_instance_id)
        if old_id is None:
            _add(step, request, new_id)
        else:
            static_members.come_back(step, request, group.members[old_id], new_id)
    elif step.context.api_version >= _MEMBER_ID_REQUIRED_FROM:
        _give_out(step, request, new_id)
    else:
        _add(step, request, new_id)


def _give_out(step: ClassicStep, request: JoinGroupRequest, new_id: str) -> None:
    """Send a new member back with its id."""
    surplus = step.group.add_pending(new_id)
    if surplus is not None:
        step.set_session(surplus, None)
        step.group.remove(surplus)
    step.set_session(new_id, step.context.now_ms + request.session_timeout_ms)
    step.reply_join_error(ErrorCode.MEMBER_ID_REQUIRED, new_id)


def _reason(request: JoinGroupRequest) -> str:
    """What a client says of its join, fit for a line in the log."""
    return f"reason: {(request.reason or 'nothing')[:_REASON_MAX]!r}"


def _new_member_id(context: Context, instance_id: str | None) -> str:
    """As Kafka makes them: clients and tools show the part before the UUID."""
    uuid = UUID(bytes=context.world.new_uuid(), version=4)
    return f"{context.client_id if instance_id is None else instance_id}-{uuid}"


def _join_pending(step: ClassicStep, request: JoinGroupRequest) -> None:
    """Somebody who was sent back with a member id, as dynamic members are."""
    if request.group_instance_id is not None:
        raise Reject(ErrorCode.UNKNOWN_SERVER_ERROR, "a static member uses the member id of another member")
    _add(step, request, request.member_id)


def _add(step: ClassicStep, request: JoinGroupRequest, member_id: str) -> None:
    group, context = step.group, step.context
    terms = terms_of(request, context.api_version)
    member = ClassicGroupMember(member_id, request.group_instance_id, context.client_id, context.client_host, terms)
    member.is_new = True
    member.join = Parked(context.token, context.api_version)
    group.add(member, request.protocol_type)
    if group.initial_delay is not None:
        group.initial_delay.has_grown = True
    member.session_at_ms = context.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
    step.set_session(member_id, member.session_at_ms)
    rebalance(step, f"{member_id} joins; {_reason(request)}")


def _join_known(step: ClassicStep, request: JoinGroupRequest) -> None:
    """A member joins again."""
    group = step.group
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except Reject as reject:
        step.reply_join_error(reject.code, request.member_id)
        return
    terms = terms_of(request, step.context.api_version)
    if _is_current(step, member, terms):
        is_leader = group.state is GroupState.COMPLETING_REBALANCE and group.is_leader(member.member_id)
        answer = join_answer(group, member.member_id, step.context.api_version, with_members=is_leader)
        step.reply(step.context.token, answer)
        return
    group.change_terms(member, terms)
    step.park_join(member)
    rebalance(step, f"{member.member_id} joins again; {_reason(request)}")


def _is_current(step: ClassicStep, member: ClassicGroupMember, terms: Terms) -> bool:
    """Whether the generation can go on: the member has only missed its answer. A leader that joins a stable group again
    wants a new assignment, for instance because a topic has grown."""
    group = step.group
    if group.state is GroupState.PREPARING_REBALANCE:
        return False
    if group.state is GroupState.STABLE and group.is_leader(member.member_id):
        return False
    return member.protocols == terms.protocols
