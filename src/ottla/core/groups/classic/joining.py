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
from ottla.core.groups.classic.leaving import remove_member
from ottla.core.groups.classic.member import Member, Parked, Terms, terms_of
from ottla.core.groups.classic.rebalance import maybe_complete_join, rebalance
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.turn import Turn, join_answer
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


def join(turn: Turn, request: JoinGroupRequest) -> None:
    """Decide on a join; the group may be a new one."""
    group = turn.group
    if not _has_room(turn, request.member_id):
        remove_member(turn, request.member_id)
        turn.reply_join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        maybe_complete_join(turn)
    elif not group.supports(request.protocol_type, (each.name for each in request.protocols)):
        turn.reply_join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif not request.member_id:
        _join_unknown(turn, request)
    elif request.member_id in group.pending_members:
        _join_pending(turn, request)
    else:
        _join_known(turn, request)


def _has_room(turn: Turn, member_id: str) -> bool:
    """Members may stay, new ones come up to the limit. While a rebalance is prepared those count who have joined: the
    limit may have been lowered, and then the last to come are out."""
    group, size_max = turn.group, turn.setting("group.max.size")
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.parked_join_count < size_max
    return member is not None or len(group.members) < size_max


def _join_unknown(turn: Turn, request: JoinGroupRequest) -> None:
    """Somebody without a member id."""
    group = turn.group
    new_id = _new_member_id(turn.context, request.group_instance_id)
    if request.group_instance_id is not None:
        old_id = group.statics.get(request.group_instance_id)
        if old_id is None:
            _add(turn, request, new_id)
        else:
            static_members.come_back(turn, request, group.members[old_id], new_id)
    elif turn.context.api_version >= _MEMBER_ID_REQUIRED_FROM:
        _give_out(turn, request, new_id)
    else:
        _add(turn, request, new_id)


def _give_out(turn: Turn, request: JoinGroupRequest, new_id: str) -> None:
    """Send a new member back with its id."""
    surplus = turn.group.add_pending(new_id)
    if surplus is not None:
        turn.set_session(surplus, None)
        turn.group.remove(surplus)
    turn.set_session(new_id, turn.context.now_ms + request.session_timeout_ms)
    turn.reply_join_error(ErrorCode.MEMBER_ID_REQUIRED, new_id)


def _reason(request: JoinGroupRequest) -> str:
    """What a client says of its join, fit for a line in the log."""
    return f"it says {(request.reason or 'nothing')[:_REASON_MAX]!r}"


def _new_member_id(context: Context, instance_id: str | None) -> str:
    """As Kafka makes them: clients and tools show the part before the UUID."""
    uuid = UUID(bytes=context.world.new_uuid(), version=4)
    return f"{context.client_id if instance_id is None else instance_id}-{uuid}"


def _join_pending(turn: Turn, request: JoinGroupRequest) -> None:
    """Somebody who was sent back with a member id, as dynamic members are."""
    if request.group_instance_id is not None:
        raise Reject(ErrorCode.UNKNOWN_SERVER_ERROR, "a member with an instance id uses the member id of another")
    _add(turn, request, request.member_id)


def _add(turn: Turn, request: JoinGroupRequest, member_id: str) -> None:
    group, context = turn.group, turn.context
    terms = terms_of(request, context.api_version)
    member = Member(member_id, request.group_instance_id, context.client_id, context.client_host, terms)
    member.is_new = True
    member.join = Parked(context.token, context.api_version)
    group.add(member, request.protocol_type)
    if group.initial_delay is not None:
        group.initial_delay.has_grown = True
    member.session_at_ms = context.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
    turn.set_session(member_id, member.session_at_ms)
    rebalance(turn, f"{member_id} joins; {_reason(request)}")


def _join_known(turn: Turn, request: JoinGroupRequest) -> None:
    """A member joins again."""
    group = turn.group
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except Reject as reject:
        turn.reply_join_error(reject.code, request.member_id)
        return
    terms = terms_of(request, turn.context.api_version)
    if _is_current(turn, member, terms):
        is_leader = group.state is GroupState.COMPLETING_REBALANCE and group.is_leader(member.member_id)
        answer = join_answer(group, member.member_id, turn.context.api_version, with_members=is_leader)
        turn.reply(turn.context.token, answer)
        return
    group.change_terms(member, terms)
    turn.park_join(member)
    rebalance(turn, f"{member.member_id} joins again; {_reason(request)}")


def _is_current(turn: Turn, member: Member, terms: Terms) -> bool:
    """Whether the generation can go on: the member has only missed its answer. A leader that joins a stable group again
    wants a new assignment, for instance because a topic has grown."""
    group = turn.group
    if group.state is GroupState.PREPARING_REBALANCE:
        return False
    if group.state is GroupState.STABLE and group.is_leader(member.member_id):
        return False
    return member.protocols == terms.protocols
