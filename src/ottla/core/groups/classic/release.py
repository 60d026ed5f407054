"""A classic group that turns into another kind of group, as far as this side goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.core.coordinator.contract import Reply, Timer, Token
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.step import join_error, join_key, session_key, sync_key
from ottla.wire.errors import ErrorCode
from ottla.wire.types.sync_group import SyncGroupResponse

__all__ = ["Released", "parked_tokens", "release"]


class Released(NamedTuple):
    replies: list[Reply]
    timers: list[Timer]


def release(group: ClassicGroup, code: ErrorCode) -> Released:
    """Answer everybody who waits with an error, and cancel all deadlines."""
    replies = []
    for member in group.members.values():
        if member.join is not None:
            answer = join_error(code, member.member_id, member.join.api_version)
            replies.append(Reply(member.join.token, answer))
        if member.sync is not None:
            replies.append(Reply(member.sync.token, SyncGroupResponse(error_code=code)))
        member.join = member.sync = None
    group.parked_join_count = 0
    return Released(replies, list(_cancels(group)))


def _cancels(group: ClassicGroup) -> Iterable[Timer]:
    yield Timer(join_key(group.group_id), None)
    yield Timer(sync_key(group.group_id), None)
    for member_id in (*group.members, *group.pending_members):
        yield Timer(session_key(group.group_id, member_id), None)


def parked_tokens(group: ClassicGroup) -> Iterable[Token]:
    for member in group.members.values():
        for parked in (member.join, member.sync):
            if parked is not None:
                yield parked.token
