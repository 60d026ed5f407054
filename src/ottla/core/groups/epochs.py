"""What consumer groups and share groups have in common: epochs, and a target that the coordinator computes (KIP-848).

The group epoch grows with whatever an assignment depends on. A target is computed for a group epoch and has it as its
assignment epoch. Members are told their part of the target and get its epoch with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, Self, TypeVar, cast

import msgspec

from ottla.core.coordinator.contract import World
from ottla.core.groups.assignors import Target
from ottla.core.groups.table import Group, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = ["STEADY_NAMES_MAX", "EpochGroup", "EpochReplay", "bounded_setting", "target_of"]

FIRST_EPOCH: Final = 1
"""Of a group that has no records of its epochs yet."""
NO_TARGET: Final[Target] = {}
STEADY_NAMES_MAX: Final = 1_000
"""A client that names all its topics in every heartbeat is remembered with so many; each of them has its own copy."""


class EpochMember(Protocol):
    def released(self) -> Self:
        """The member without what it has: the first step of its removal."""
        ...


class EpochSettings(Protocol):
    @property
    def version(self) -> int:
        """Of all settings, when these were read."""
        ...


MemberType = TypeVar("MemberType", bound=EpochMember)
SettingsType = TypeVar("SettingsType", bound=EpochSettings)
SteadyType = TypeVar("SteadyType")
GroupType = TypeVar("GroupType", bound="EpochGroup[Any, Any, Any]")


class EpochGroup(Generic[MemberType, SettingsType, SteadyType]):
    """Soft fields: `refresh_due`, `refreshed_epoch`, `steady`, `session_at_ms`."""

    def __init__(
        self,
        group_id: str,
        new_member: Callable[[str], MemberType],
        read_settings: Callable[[World, str], SettingsType],
    ) -> None:
        self.group_id = group_id
        self._new_member = new_member
        self._read_settings = read_settings
        self._settings: SettingsType | None = None
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

    def settings(self, world: World) -> SettingsType:
        if self._settings is None or self._settings.version != world.settings_version:
            self._settings = self._read_settings(world, self.group_id)
        return self._settings

    def epoch_state(self) -> dict[str, Any]:
        """The part of its hard state that is told here."""
        return {
            "group_epoch": self.group_epoch,
            "metadata_hash": self.metadata_hash,
            "assignment_epoch": self.assignment_epoch,
            "assigned_at_ms": self.assigned_at_ms,
            "members": {
                each: msgspec.structs.asdict(cast("msgspec.Struct", self.members[each])) for each in self.members
            },
            "targets": {member_id: dict(target) for member_id, target in self.targets.items()},
        }

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

    def change_member(self, member_id: str, change: Callable[[MemberType], MemberType]) -> None:
        """Put a member in, or another in its place."""
        old = self.members.get(member_id)
        new = self.members[member_id] = change(old or self._new_member(member_id))
        self._member_changed(old, new)
        self.steady.clear()

    def release_member(self, member_id: str) -> None:
        """What a member has is taken from it: the first step of its removal."""
        if member_id in self.members:
            self.change_member(member_id, lambda member: member.released())

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is not None:
            self._member_changed(old, None)
            self.session_at_ms.pop(member_id, None)
            self.steady.clear()

    def _member_changed(self, old: MemberType | None, new: MemberType | None) -> None:
        """What a kind of group derives from its members follows. None stands for no member."""


class EpochReplay(Generic[GroupType]):
    """Takes the records of one kind of group over into the table of groups.

    A record of a group that is not there makes it, in place of one of another kind; one that removes something makes
    none. A log that was compacted has any of a group's records first, so none of them relies on another.
    """

    def __init__(
        self,
        table: GroupTable,
        kind: type[GroupType],
        with_metadata: Callable[[Any, Any], Any],
        with_current: Callable[[Any, Any], Any],
    ) -> None:
        """`with_metadata` and `with_current`: a member, and what a record says of it, give the member after it."""
        self._table = table
        self._kind = kind
        self._with_metadata = with_metadata
        self._with_current = with_current

    def _group(self, record: KeyedRecord) -> GroupType | None:
        group: Any = self._table.get(record.key.group_id)
        if isinstance(group, self._kind):
            return group
        if record.value is None:
            return None
        made = cast("Callable[[str], GroupType]", self._kind)(record.key.group_id)
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
            group.set_target(record.key.member_id, None if value is None else target_of(value.topic_partitions))

    def _member(self, record: KeyedRecord, *_: int) -> None:
        self._change_member(record, self._with_metadata, self._kind.remove_member)

    def _current(self, record: KeyedRecord, *_: int) -> None:
        self._change_member(record, self._with_current, self._kind.release_member)

    def _change_member(
        self, record: KeyedRecord, change: Callable[[Any, Any], Any], undo: Callable[[GroupType, str], None]
    ) -> None:
        group, value = self._group(record), record.value
        if group is None:
            return
        if value is None:
            undo(group, record.key.member_id)
        else:
            group.change_member(record.key.member_id, lambda member: change(member, value))


class PartitionsOfTopic(Protocol):
    """As records and requests list them."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[int]: ...


def target_of(topics: Iterable[PartitionsOfTopic]) -> Target:
    return {each.topic_id: tuple(sorted(each.partitions)) for each in topics if each.partitions}


def bounded_setting(world: World, group_id: str, family: str, name: str) -> int:
    """A setting of a group. Its own value that has come to lie outside the broker's bounds counts as the nearest one
    inside."""
    value: int = world.group_setting(group_id, f"{family}.{name}")
    low: int = world.settings[f"group.{family}.min.{name}"]
    high: int = world.settings[f"group.{family}.max.{name}"]
    return max(min(value, high), low)
