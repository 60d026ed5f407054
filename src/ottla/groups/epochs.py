"""What consumer groups and share groups have in common: epochs, and a target that the coordinator computes (KIP-848).

The group epoch grows with whatever an assignment depends on. A target is computed for a group epoch and has it as its
assignment epoch. Members are told their part of the target and get its epoch with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from ottla.coordinator.contract import World
from ottla.groups.assignors import Target
from ottla.groups.table import Group, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = ["EpochGroup", "EpochReplay", "bounded_setting"]

FIRST_EPOCH: Final = 1
"""Of a group that has no records of its epochs yet."""
NO_TARGET: Final[Target] = {}

MemberType = TypeVar("MemberType")
SteadyType = TypeVar("SteadyType")
GroupType = TypeVar("GroupType", bound="EpochGroup[Any, Any]")


class EpochGroup(Generic[MemberType, SteadyType]):
    """Soft fields: `refresh_due`, `refreshed_epoch`, `steady`, `session_at_ms`."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """Wall clock of the last computation of the target; 0 if it is not known."""
        self.members: dict[str, MemberType] = {}
        self.targets: dict[str, Target] = {}

        self.refresh_due = True
        """Topics may have changed since the metadata hash was last compared."""
        self.refreshed_epoch = 0
        """The group epoch that the last comparison led to; while the group's is smaller, it was not written."""
        self.steady: dict[str, SteadyType] = {}
        """By member: a heartbeat that changed nothing, and its answer."""
        self.session_at_ms: dict[str, int] = {}
        """When the sessions of members end. A steady heartbeat moves this alone; the timer, which may be earlier, is
        set again when it comes."""

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_delete(self) -> None:
        if self.members:
            raise Reject(ErrorCode.NON_EMPTY_GROUP)

    def member(self, member_id: str) -> MemberType:
        member = self.members.get(member_id)
        if member is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {self.group_id} has no member {member_id}.")
        return member

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    # --- replay -------------------------------------------------------------------------------------------------------

    def set_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        self.group_epoch = group_epoch
        self.metadata_hash = metadata_hash
        self.steady.clear()

    def set_target_epoch(self, assignment_epoch: int, assigned_at_ms: int) -> None:
        self.assignment_epoch = assignment_epoch
        self.assigned_at_ms = assigned_at_ms
        self.steady.clear()

    def set_target(self, member_id: str, target: Target | None) -> None:
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target
        self.steady.clear()


class EpochReplay(Generic[GroupType]):
    """Takes the records of one kind of group over into the table of groups.

    A record of a group that is not there makes it, in place of one of another kind; one that removes something makes
    none. A log that was compacted has any of a group's records first, so none of them relies on another.
    """

    def __init__(self, table: GroupTable, kind: type[GroupType], target_of: Callable[[Any], Target]) -> None:
        self._table = table
        self._kind = kind
        self._target_of = target_of

    def _group(self, record: KeyedRecord) -> GroupType | None:
        group: Any = self._table.get(record.key.group_id)
        if isinstance(group, self._kind):
            return group
        if record.value is None:
            return None
        made = self._kind(record.key.group_id)
        self._table.put(cast("Group", made))  # what is said here is not all of a group
        return made

    def _epoch(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        if group is None:
            return
        if record.value is None:
            self._table.remove(group.group_id)
        else:
            group.set_epoch(record.value.epoch, record.value.metadata_hash)

    def _target_epoch(self, record: KeyedRecord, *_: int) -> None:
        group, value = self._group(record), record.value
        if group is not None:
            epoch, at_ms = (-1, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp)
            group.set_target_epoch(epoch, at_ms)

    def _target(self, record: KeyedRecord, *_: int) -> None:
        group, value = self._group(record), record.value
        if group is not None:
            group.set_target(record.key.member_id, None if value is None else self._target_of(value))


def bounded_setting(world: World, group_id: str, family: str, name: str) -> int:
    """A setting of a group. Its own value that has come to lie outside the broker's bounds counts as the nearest one
    inside."""
    value: int = world.group_setting(group_id, f"{family}.{name}")
    low: int = world.settings[f"group.{family}.min.{name}"]
    high: int = world.settings[f"group.{family}.max.{name}"]
    return max(min(value, high), low)
