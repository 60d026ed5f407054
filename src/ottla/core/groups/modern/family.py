"""What the families of modern groups do alike: the way of a heartbeat, deadlines of members, and a shard's life.

Deadlines of a member: its `session`, which it renews with every heartbeat; and `rebalance`, within which it must give
up what was taken from it. Who misses one is removed. A family may have more of them, and deadlines of other things.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange, answer
from ottla.core.groups.modern.group import ModernGroup, Steady
from ottla.core.groups.modern.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.modern.replay import Change, ModernReplay
from ottla.core.groups.table import Group, GroupKind, GroupTable, not_of_kind
from ottla.core.groups.topic_sets import TopicSets
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = ["STEADY_NAMES_MAX", "ModernFamily"]

log = logging.getLogger(__name__)

STEADY_NAMES_MAX: Final = 1_000
"""A client that names all its topics in every heartbeat is remembered with so many; each of them has its own copy."""
FOREVER: Final = sys.maxsize

GroupType = TypeVar("GroupType", bound=ModernGroup[Any, Any, Any])


class ModernFamily(Generic[GroupType]):
    """`topic_sets` is soft."""

    name: ClassVar[str]
    kind: ClassVar[GroupKind]
    response_type: ClassVar[type]
    """Of heartbeats."""

    def __init__(
        self,
        table: GroupTable,
        group_type: type[GroupType],
        group_key: type,
        changes: Mapping[type, Change[GroupType]],
        deadlines: Mapping[str, Callable[[Any, Context], Result]],
    ) -> None:
        """`group_key` and `changes`: see `ModernReplay`. `deadlines`: those that are not of members, by the second
        entry of their keys."""
        self._table = table
        self._group_type = group_type
        self._deadlines = deadlines
        self.topic_sets = TopicSets()
        self.replays = ModernReplay(table, group_type, group_key, changes).by_key

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def heartbeat(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        group: Any = self._table.get(request.group_id)
        if isinstance(group, self._group_type):
            steady = group.steady.get(request.member_id)
            if (
                steady is not None
                and steady.request == request
                and steady.circumstances
                == (context.client_id, context.client_host, context.api_version, context.world.settings_version)
                and steady.from_wall_ms <= context.wall_ms < steady.until_wall_ms
            ):
                return self._answer_steady(group, steady, context)
        self._check(request, context)
        if request.member_epoch < 0:
            return self._leave(self._existing(request.group_id), request, context)
        return self._step(request, context)

    def _answer_steady(self, group: GroupType, steady: Steady, context: Context) -> Result:
        group.session_at_ms[steady.request.member_id] = context.now_ms + steady.session_timeout_ms
        return answer(context.token, steady.response)

    def _remember(
        self,
        group: GroupType,
        request: Any,  # noqa: ANN401
        response: Any,  # noqa: ANN401
        context: Context,
        until_wall_ms: float = FOREVER,
    ) -> None:
        """Remember a heartbeat that changed nothing, and whose repetition will change nothing either."""
        group.steady[response.member_id] = Steady(
            request,
            (context.client_id, context.client_host, context.api_version, context.world.settings_version),
            context.wall_ms if until_wall_ms < FOREVER else 0,
            until_wall_ms,
            group.settings(context.world).session_timeout_ms,
            response,
        )

    def _check(self, request: Any, context: Context) -> None:  # noqa: ANN401
        """Reject a heartbeat that cannot be served, whatever the group."""

    def _step(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        """What a heartbeat of a member that joins or stays leads to."""
        raise NotImplementedError

    def renewed_session(self, group: GroupType, member_id: str, at_ms: int) -> Timer:
        """A member has shown that it lives."""
        group.session_at_ms[member_id] = at_ms
        return Timer(self._member_key("session", group, member_id), at_ms)

    def _member_key(self, what: str, group: GroupType, member_id: str) -> tuple[str, ...]:
        return (self.name, what, group.group_id, member_id)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def fence(
        self, group: GroupType, members: Sequence[Any], context: Context, replies: Sequence[Reply] = ()
    ) -> Result:
        """Remove members and raise the group epoch."""
        raise NotImplementedError

    def _leave(self, group: GroupType, request: Any, context: Context) -> Result:  # noqa: ANN401
        """What the heartbeat of a member that leaves leads to. The session of a static member that leaves for a while
        goes on: when that ends, the member and what it owns go."""
        member = self._leaver(group, request)
        response = self.response_type(member_id=member.member_id, member_epoch=request.member_epoch)
        replies = (Reply(context.token, response),)
        if request.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            return self.fence(group, (member,), context, replies)
        timer = Timer(self._member_key("rebalance", group, member.member_id), None)
        return Result((self._static_leave_record(group, member),), replies, (timer,))

    def _leaver(self, group: GroupType, request: Any) -> Any:  # noqa: ANN401
        """The member that leaves."""
        return group.member(request.member_id)

    def _static_leave_record(self, group: GroupType, member: Any) -> KeyedRecord:  # noqa: ANN401
        """Says that a static member has left for a while. For kinds of groups that have static members."""
        raise NotImplementedError

    # --- the groups of this kind --------------------------------------------------------------------------------------

    def _get(self, group_id: str) -> GroupType | None:
        group: Any = self._table.get(group_id)
        return group if isinstance(group, self._group_type) else None

    def _existing(self, group_id: str) -> GroupType:
        group: Any = self._table.get(group_id)
        if isinstance(group, self._group_type):
            return group
        raise self._not_found(group_id, group)

    def _not_found(self, group_id: str, group: Group | None) -> Reject:
        return not_of_kind(group_id, group, self.kind)

    def _groups(self) -> list[GroupType]:
        return self._table.of_kind(self._group_type)

    def hard_state(self) -> Mapping[Any, Any]:
        return {group.group_id: group.hard_state() for group in self._groups()}

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        own = self._deadlines.get(key[1])
        return self._member_overdue(key, context) if own is None else own(key, context)

    def _member_overdue(self, key: tuple[str, str, str, str], context: Context) -> Result:
        _, what, group_id, member_id = key
        group = self._get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return NOTHING
        if what == "rebalance" and not member.must_revoke:
            return NOTHING
        if what == "session" and group.session_at_ms.get(member_id, 0) > context.now_ms:
            return Result(timers=(Timer(key, group.session_at_ms[member_id]),))
        log.info("group %s: removed member %s: its %s deadline has passed", group_id, member_id, what)
        return self.fence(group, (member,), context)

    def _member_timers(self, group: GroupType, member: Any, context: Context) -> Iterable[Timer]:  # noqa: ANN401
        """The deadlines of a member whose coordinator has just been loaded."""
        at_ms = context.now_ms + group.settings(context.world).session_timeout_ms
        return (Timer(self._member_key("session", group, member.member_id), at_ms),)

    # --- the shard's life ---------------------------------------------------------------------------------------------

    def loaded(self, context: Context) -> Result:
        return Result(
            timers=[
                timer
                for group in self._groups()
                for member in group.members.values()
                for timer in self._member_timers(group, member, context)
            ]
        )

    def unloaded(self) -> Iterable[Any]:
        """Nobody is parked here."""
        return ()

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return NOTHING

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        names = change.names()
        self.topic_sets.forget(names)
        for group in self._groups():
            if not group.subscribed_topics().isdisjoint(names):
                group.refresh_due = True
                group.changed()
        return NOTHING

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No record of a modern group is part of a transaction."""
