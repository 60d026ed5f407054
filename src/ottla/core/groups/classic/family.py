"""Classic groups as a family of the group coordinator: which request, record, deadline or outcome goes where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from ottla.core.coordinator.append_errors import as_coordinator_error
from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Token, TopicsChange
from ottla.core.groups.classic import expiry, join_group, leave_group, static_members, sync_group
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.rebalance import prepare
from ottla.core.groups.classic.records import group_of, write_empty, write_group
from ottla.core.groups.classic.release import parked_tokens, release
from ottla.core.groups.classic.static_members import CameBack
from ottla.core.groups.classic.step import FAMILY, ClassicStep, TimerKind, join_error
from ottla.core.groups.classic.sync_group import Assigned
from ottla.core.groups.coordinator import Handler, Replay, join_results
from ottla.core.groups.preparation import Preparations
from ottla.core.groups.table import Group, GroupKind, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import GroupMetadataKey
from ottla.wire.types.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.types.join_group import JoinGroupRequest
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.sync_group import SyncGroupRequest

__all__ = ["ClassicFamily", "ClassicHost"]

_REPLACEABLE: Final = frozenset({GroupKind.CONSUMER, GroupKind.STREAMS})
"""Kinds of groups whose place a classic group takes when they are empty."""


class ClassicHost(Protocol):
    """Another kind of group that takes members of the classic protocol. It answers the context's token or keeps it."""

    def join(self, group: Any, request: JoinGroupRequest, context: Context) -> Result: ...  # noqa: ANN401
    def sync(self, group: Any, request: SyncGroupRequest, context: Context) -> Result: ...  # noqa: ANN401
    def heartbeat(self, group: Any, request: HeartbeatRequest, context: Context) -> Result: ...  # noqa: ANN401
    def leave(self, group: Any, request: LeaveGroupRequest, context: Context) -> Result: ...  # noqa: ANN401


class _Joining(NamedTuple):
    """A join that waits until the group whose place it takes may go."""

    request: JoinGroupRequest
    context: Context


class Created(NamedTuple):
    """The first record of a group is being written."""

    family: str
    group_id: str


class ClassicFamily:
    """The classic groups of one shard.

    Soft fields: `_arriving`, groups whose first record is about to be replayed, which puts them into the table;
    `_preparations`, joins that wait for a group of another kind to go.
    """

    name = FAMILY

    def __init__(self, table: GroupTable, hosts: Mapping[GroupKind, ClassicHost] | None = None) -> None:
        self.table = table
        self.hosts: dict[GroupKind, ClassicHost] = dict(hosts or {})
        self._arriving: dict[str, ClassicGroup] = {}
        self._preparations: Preparations[_Joining] = Preparations(FAMILY, table, self._replace_prepared)

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
        }

    @property
    def replays(self) -> Mapping[type, Replay]:
        return {GroupMetadataKey: self._replay}

    # --- requests -----------------------------------------------------------------------------------------------------

    def _join(self, request: JoinGroupRequest, context: Context) -> Result:
        try:
            join_group.check_request(request, context)
        except Reject as reject:
            return _refuse_join(reject.code, request.member_id, context)
        group = self.table.get(request.group_id)
        if isinstance(group, ClassicGroup):
            step = ClassicStep(group, context)
            join_group.join(step, request)
            return step.result()
        if group is None:
            return self._create(None, request, context)
        if group.is_empty and group.kind in _REPLACEABLE:
            return self._replace(group, request, context)
        host = self.hosts.get(group.kind)
        if host is None:
            return _refuse_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "", context)
        return host.join(group, request, context)

    def _replace(self, group: Group, request: JoinGroupRequest, context: Context) -> Result:
        """Take the place of an empty group of another kind. What others hold of it goes first; whoever else joins
        meanwhile comes again, as clients do after a rebalance."""
        if request.member_id:
            return _refuse_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, context)
        if self._preparations.is_under_way(group.group_id):
            return _refuse_join(ErrorCode.REBALANCE_IN_PROGRESS, "", context)
        try:
            begun = self._preparations.begin(group, _Joining(request, context), context)
        except Reject as reject:
            return _refuse_join(reject.code, "", context)
        return begun if begun is not None else self._create(group, request, context)

    def _replace_prepared(self, group_id: str, waiting: list[_Joining], outcome: Outcome, context: Context) -> Result:
        if not waiting:
            return NOTHING
        waiter = waiting[0]  # there is but one
        if not outcome.is_ok:
            return _refuse_join(ErrorCode.REBALANCE_IN_PROGRESS, "", waiter.context)
        return self._join(waiter.request, replace(waiter.context, now_ms=context.now_ms, wall_ms=context.wall_ms))

    def _create(self, replaced: Group | None, request: JoinGroupRequest, context: Context) -> Result:
        """A new group begins with a record of its own, whatever becomes of this join."""
        if request.member_id:
            return _refuse_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, context)
        group = ClassicGroup(request.group_id, context.wall_ms)
        step = ClassicStep(group, context)
        step.records.extend(replaced.tombstones() if replaced is not None else ())
        step.records.append(write_empty(group))
        step.after = Created(FAMILY, group.group_id)
        join_group.join(step, request)
        self._arriving[group.group_id] = group
        return step.result()

    def _sync(self, request: SyncGroupRequest, context: Context) -> Result:
        sync_group.check_request(request, context.api_version)
        group = self._of_members(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self._host(group).sync(group, request, context)
        step = ClassicStep(group, context)
        sync_group.sync(step, request)
        return step.result()

    def _heartbeat(self, request: HeartbeatRequest, context: Context) -> Result:
        group = self._of_members(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self._host(group).heartbeat(group, request, context)
        code = sync_group.heartbeat(group, request, context)
        return Result(replies=(Reply(context.token, HeartbeatResponse(error_code=code)),))

    def _leave(self, request: LeaveGroupRequest, context: Context) -> Result:
        if not request.group_id:
            raise Reject(ErrorCode.INVALID_GROUP_ID)
        group = self.table.get(request.group_id)
        if isinstance(group, ClassicGroup):
            step = ClassicStep(group, context)
            leave_group.leave(step, request)
            return step.result()
        host = None if group is None else self.hosts.get(group.kind)
        if host is None:
            return Result(replies=(Reply(context.token, leave_group.leave_nobody(request, context.api_version)),))
        return host.leave(group, request, context)

    def _of_members(self, group_id: str) -> Group:
        """A group that has members."""
        if not group_id:
            raise Reject(ErrorCode.INVALID_GROUP_ID)
        group = self.table.get(group_id)
        if group is None or group.is_empty:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _host(self, group: Group) -> ClassicHost:
        host = self.hosts.get(group.kind)
        if host is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)
        return host

    # --- records ------------------------------------------------------------------------------------------------------

    def _replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        group_id = record.key.group
        if record.value is None:
            if isinstance(self.table.get(group_id), ClassicGroup):
                self.table.remove(group_id)
            return
        group = self._arriving.pop(group_id, None) or self.table.get(group_id)
        if isinstance(group, ClassicGroup) and group.writing == record.value:
            group.stored, group.writing = record.value, None  # this group has decided so, and is ahead of its record
        else:
            group = group_of(group_id, record.value)
        self.table.put(group)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No record of a classic group belongs to a transaction."""

    def loaded(self, context: Context) -> Result:
        """Sessions begin anew; a group that is larger than allowed by now rebalances, so that its members can commit
        before some of them go."""
        return join_results([self._start(group, context) for group in self._groups() if group.members])

    def _start(self, group: ClassicGroup, context: Context) -> Result:
        step = ClassicStep(group, context)
        for member in group.members.values():
            step.start_session(member)
        if len(group.members) > step.setting("group.max.size"):
            prepare(step, f"it has {len(group.members)} members, more than group.max.size")
        return step.result()

    def unloaded(self) -> Iterable[Token]:
        replacing = [each.context.token for each in self._preparations.waiters()]
        return [*replacing, *(token for group in self._groups() for token in parked_tokens(group))]

    def _groups(self) -> Iterable[ClassicGroup]:
        return self.table.of_kind(ClassicGroup)

    # --- deadlines and outcomes ---------------------------------------------------------------------------------------

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        _, kind, group_id, *member_id = key
        if kind == TimerKind.SESSION:
            return self._on_group(group_id, context, lambda step: expiry.expire_session(step, *member_id))
        return self._on_group(group_id, context, expiry.expire_join if kind == TimerKind.JOIN else expiry.expire_syncs)

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        if isinstance(subject, Assigned):
            return self._on_group(
                subject.group_id, context, lambda step: sync_group.end_assigning(step, subject, outcome)
            )
        if isinstance(subject, CameBack):
            return self._on_group(
                subject.group_id, context, lambda step: static_members.end_coming_back(step, subject, outcome)
            )
        if isinstance(subject, Created):
            return NOTHING if outcome.is_ok else self._drop(subject.group_id, outcome)
        return self._preparations.settled(subject, outcome, context)

    def _on_group(self, group_id: str, context: Context, act: Callable[[ClassicStep], None]) -> Result:
        """Nothing, if the group is gone or has become one of another kind."""
        group = self.table.get(group_id)
        if not isinstance(group, ClassicGroup):
            return NOTHING
        step = ClassicStep(group, context)
        act(step)
        return step.result()

    def _drop(self, group_id: str, outcome: Outcome) -> Result:
        """The first record of a group could not be written. If only its commit is in doubt, the group is there."""
        group = self._arriving.pop(group_id, None)
        if group is None:
            return NOTHING
        return Result(replies=release(group, as_coordinator_error(outcome.error)).replies)

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return NOTHING

    def hard_state(self) -> Mapping[str, Any]:
        return {group.group_id: group.hard_state() for group in self._groups() if group.stored is not None}

    # --- groups that were of another kind -----------------------------------------------------------------------------

    def adopt(self, group: ClassicGroup, context: Context, *, rebalance: bool, reason: str) -> Result:
        """Make a group, which was of another kind until now, a classic one: its record, which stands after the
        tombstones of what it was, and its deadlines. Replay puts it into the table."""
        step = ClassicStep(group, context)
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        step.records.append(write_group(group, assignments))
        step.after = Created(FAMILY, group.group_id)
        for member in group.members.values():
            step.start_session(member)
        if rebalance:
            prepare(step, reason)
        self._arriving[group.group_id] = group
        return step.result()


def _refuse_join(code: ErrorCode, member_id: str, context: Context) -> Result:
    return Result(replies=(Reply(context.token, join_error(code, member_id, context.api_version)),))
