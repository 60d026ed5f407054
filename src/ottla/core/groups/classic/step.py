"""What one call of the core decides about one group: it is gathered here and becomes the call's result."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from ottla.core.coordinator.contract import Context, Reply, Result, Timer, Token
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember, Parked
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.join_group import JoinGroupResponse
from ottla.wire.types.sync_group import SyncGroupResponse

__all__ = [
    "FAMILY",
    "ClassicStep",
    "TimerKind",
    "join_answer",
    "join_error",
    "join_key",
    "session_key",
    "sync_key",
]

FAMILY: Final = "classic"
_NULL_PROTOCOL_FROM: Final = 7
"""The version of JoinGroup from which an answer may have no protocol; before that it is an empty one."""


class TimerKind(StrEnum):
    """The second entry of a timer's key; the group follows, and the member if it is about one."""

    SESSION = "session"
    """A member, or one that is pending, has not been heard of."""
    JOIN = "join"
    """The time for joining is up, or the initial delay is."""
    SYNC = "sync"
    """The time for SyncGroup is up."""


def session_key(group_id: str, member_id: str) -> tuple[str, ...]:
    return FAMILY, TimerKind.SESSION, group_id, member_id


def join_key(group_id: str) -> tuple[str, ...]:
    return FAMILY, TimerKind.JOIN, group_id


def sync_key(group_id: str) -> tuple[str, ...]:
    return FAMILY, TimerKind.SYNC, group_id


class ClassicStep:
    __slots__ = ("after", "context", "group", "records", "replies", "timers")

    def __init__(self, group: ClassicGroup, context: Context) -> None:
        self.group = group
        self.context = context
        self.records: list[KeyedRecord] = []
        self.replies: list[Reply] = []
        self.timers: list[Timer] = []
        self.after: Any = None

    def result(self) -> Result:
        return Result(self.records, self.replies, self.timers, after=self.after)

    def setting(self, name: str) -> int:
        value: int = self.context.world.settings[name]
        return value

    # --- answers ------------------------------------------------------------------------------------------------------

    def reply(self, token: Token, message: Any) -> None:  # noqa: ANN401 - any response
        self.replies.append(Reply(token, message))

    def reply_join_error(self, code: ErrorCode, member_id: str) -> None:
        """Refuse the join that this call is about."""
        self.reply(self.context.token, join_error(code, member_id, self.context.api_version))

    def park_join(self, member: ClassicGroupMember) -> None:
        """Let the request of this call wait. One that waits already comes from a connection that the client has given
        up, or from a second client with the same id."""
        self.refuse_join(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.join = Parked(self.context.token, self.context.api_version)
        self.group.parked_join_count += 1

    def park_sync(self, member: ClassicGroupMember) -> None:
        self.refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = Parked(self.context.token, self.context.api_version)

    def take_join(self, member: ClassicGroupMember) -> Parked | None:
        """The parked join of a member, which is parked no more."""
        parked, member.join = member.join, None
        self.group.parked_join_count -= parked is not None
        return parked

    def refuse_join(self, member: ClassicGroupMember, code: ErrorCode, member_id: str | None = None) -> None:
        parked = self.take_join(member)
        if parked is not None:
            named = member.member_id if member_id is None else member_id
            self.reply(parked.token, join_error(code, named, parked.api_version))

    def refuse_sync(self, member: ClassicGroupMember, code: ErrorCode) -> None:
        self.answer_sync(member, SyncGroupResponse(error_code=code))

    def answer_sync(self, member: ClassicGroupMember, message: SyncGroupResponse) -> bool:
        """Whether there was somebody to answer."""
        parked, member.sync = member.sync, None
        if parked is not None:
            self.reply(parked.token, message)
        return parked is not None

    # --- timers -------------------------------------------------------------------------------------------------------

    def start_session(self, member: ClassicGroupMember) -> None:
        self.set_session(member.member_id, member.renew(self.context.now_ms))

    def set_session(self, member_id: str, at_ms: int | None) -> None:
        self.timers.append(Timer(session_key(self.group.group_id, member_id), at_ms))

    def set_join_timer(self, after_ms: int | None) -> None:
        self.timers.append(Timer(join_key(self.group.group_id), self._at_ms(after_ms)))

    def set_sync_timer(self, after_ms: int | None) -> None:
        self.timers.append(Timer(sync_key(self.group.group_id), self._at_ms(after_ms)))

    def _at_ms(self, after_ms: int | None) -> int | None:
        return None if after_ms is None else self.context.now_ms + after_ms


def join_answer(
    group: ClassicGroup,
    member_id: str,
    api_version: int,
    *,
    with_members: bool,
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """What a member is told about the group's generation; the leader gets all members with their metadata."""
    kind = JoinGroupResponse.JoinGroupResponseMember
    members = group.members.values() if with_members else ()
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or _no_protocol(api_version),
        leader=(group.leader_id if leader_id is None else leader_id) or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=tuple(kind(each.member_id, each.instance_id, each.metadata(group.protocol_name)) for each in members),
    )


def join_error(code: ErrorCode, member_id: str, api_version: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=_no_protocol(api_version))


def _no_protocol(api_version: int) -> str | None:
    return None if api_version >= _NULL_PROTOCOL_FROM else ""
