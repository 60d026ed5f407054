"""What administrators ask about groups of any kind: which there are, what one is doing, and to delete one.

Groups are deleted together with their offsets, and only while they have no members; what others hold of a group is
cleared away first (`preparation`). DescribeGroups knows classic groups alone; each other kind has an API of its own.

Soft: the requests that wait for a group to be prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Token
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.group_description import describe, describe_dead
from ottla.core.groups.coordinator import Handler, PlainFamily, Replay
from ottla.core.groups.preparation import Preparations
from ottla.core.groups.table import Group, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject, shortened
from ottla.wire.types.delete_groups import DeleteGroupsResponseDeletableGroupResult
from ottla.wire.types.list_groups import ListGroupsRequest, ListGroupsResponseListedGroup

__all__ = ["AdminFamily", "DeleteGroup", "DescribeGroup"]

_NOT_FOUND_FROM: Final = 6
"""The version of DescribeGroups from which a group that is not there is an error; before that it is Dead."""

OffsetTombstones = Callable[[str], Sequence[KeyedRecord]]


class DeleteGroup(NamedTuple):
    """The answer is a DeletableGroupResult."""

    group_id: str


class DescribeGroup(NamedTuple):
    """The answer is a DescribedGroup of DescribeGroups, in the version of the context."""

    group_id: str


class AdminFamily(PlainFamily):
    """The answer to ListGroups is a tuple of ListedGroup."""

    name = "admin"

    def __init__(self, table: GroupTable, offset_tombstones: OffsetTombstones) -> None:
        self.table = table
        self._offset_tombstones = offset_tombstones
        self._preparations: Preparations[Token] = Preparations(self.name, table, self._delete_prepared)

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {DeleteGroup: self._delete, DescribeGroup: self._describe, ListGroupsRequest: self._list}

    @property
    def replays(self) -> Mapping[type, Replay]:
        return {}

    def _list(self, request: ListGroupsRequest, context: Context) -> Result:
        """States and kinds are compared without regard to case; a kind that does not exist finds nothing."""
        states = {_folded(each) for each in request.states_filter}
        kinds = {each.lower() for each in request.types_filter}
        found = tuple(
            ListGroupsResponseListedGroup(group.group_id, group.protocol_type, group.state_name(), group.kind)
            for group in self.table.all().values()
            if (not states or _folded(group.state_name()) in states) and (not kinds or group.kind in kinds)
        )
        return Result(replies=(Reply(context.token, found),))

    def _describe(self, request: DescribeGroup, context: Context) -> Result:
        group = self.table.get(request.group_id)
        if isinstance(group, ClassicGroup):
            described = describe(group)
        elif context.api_version >= _NOT_FOUND_FROM:
            described = describe_dead(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND, _why_not(request.group_id, group))
        else:
            described = describe_dead(request.group_id)
        return Result(replies=(Reply(context.token, described),))

    def _delete(self, request: DeleteGroup, context: Context) -> Result:
        group = self.table.deletable(request.group_id)
        begun = self._preparations.begin(group, context.token, context)
        return begun if begun is not None else self._remove(group, [context.token])

    def _delete_prepared(self, group_id: str, tokens: list[Token], outcome: Outcome, context: Context) -> Result:
        try:
            group = self._ready(group_id, outcome, context)
        except Reject as reject:
            failed = DeleteGroupsResponseDeletableGroupResult(group_id, reject.code, reject.message)
            return Result(replies=[Reply(token, failed) for token in tokens])
        return self._remove(group, tokens) if tokens else NOTHING

    def _ready(self, group_id: str, outcome: Outcome, context: Context) -> Group:
        """A group that may go now. One that somebody has used meanwhile may hold something again, and stays."""
        if not outcome.is_ok:
            raise Reject(outcome.error, outcome.message)
        group = self.table.deletable(group_id)
        if group.before_removal(self.name, context) is not None:
            raise Reject(ErrorCode.GROUP_DELETION_FAILED, "the group was used while it was being deleted")
        return group

    def _remove(self, group: Group, tokens: Iterable[Token]) -> Result:
        deleted = DeleteGroupsResponseDeletableGroupResult(group.group_id)
        records = (*self._offset_tombstones(group.group_id), *group.tombstones())
        return Result(records, [Reply(token, deleted) for token in tokens])

    # --- the rest of a family -----------------------------------------------------------------------------------------

    def unloaded(self) -> Iterable[Any]:
        return self._preparations.waiters()

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self._preparations.settled(subject, outcome, context)

    def hard_state(self) -> Mapping[Any, Any]:
        return {}


def _folded(state: str) -> str:
    """Some tools write NOT_READY, others NotReady."""
    return state.lower().replace("_", "")


def _why_not(group_id: str, group: Group | None) -> str:
    text = f"there is no group {group_id}" if group is None else f"group {group_id} is a {group.kind} group"
    return shortened(text)
