"""A modern group: its epochs, members and target, and the heartbeats that it remembers. Only replay changes it, but for
the soft fields, which are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec

from ottla.core.coordinator.contract import World
from ottla.core.groups.assignors import Target
from ottla.core.groups.modern.members import ModernMember
from ottla.core.groups.modern.target_jobs import TargetJob
from ottla.core.groups.table import GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["FIRST_EPOCH", "ModernGroup", "ModernSettings", "Readers", "Steady", "bounded_setting", "target_of"]

FIRST_EPOCH: Final = 1
"""Of a group that has no records of its epochs yet."""
NO_TARGET_EPOCH: Final = -1
"""The assignment epoch of a group whose target was removed."""


class ModernSettings(Protocol):
    @property
    def version(self) -> int:
        """Of all settings, when these were read."""
        ...

    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def assignment_interval_ms(self) -> int: ...


MemberType = TypeVar("MemberType", bound=ModernMember)
SettingsType = TypeVar("SettingsType", bound=ModernSettings)
TargetType = TypeVar("TargetType")


class Readers(NamedTuple, Generic[MemberType, SettingsType, TargetType]):
    """How a kind of group reads its settings and its records."""

    settings: Callable[[World, str], SettingsType]
    new_member: Callable[[str], MemberType]
    with_metadata: Callable[[MemberType, Any], MemberType]
    """A member, and what a record says of it, give the member after the record."""
    with_current: Callable[[MemberType, Any], MemberType]
    target: Callable[[Any], TargetType]
    no_target: TargetType
    """Of a member for which none has been computed."""


class Steady(NamedTuple):
    """A heartbeat that changed nothing, and its answer: the same request gets the same again while nothing changes."""

    request: Any
    circumstances: tuple[str, str, int, int]
    """Client id, client host, version of the request, version of the settings."""
    from_wall_ms: int
    until_wall_ms: float
    """When something becomes due that a heartbeat must do. A clock that was set back tells nothing about it."""
    session_timeout_ms: int
    response: Any


class ModernGroup(Generic[MemberType, SettingsType, TargetType]):
    """Soft fields: `refresh_due`, `refreshed_epoch`, `steady`, `session_at_ms`, `members_version`, those of
    `target_jobs`, and `_withheld`."""

    kind: GroupKind

    def __init__(self, group_id: str, readers: Readers[MemberType, SettingsType, TargetType]) -> None:
        self.group_id = group_id
        self._readers = readers
        self._settings: SettingsType | None = None
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """Wall clock of the last computation of the target; 0 if it is not known."""
        self.members: dict[str, MemberType] = {}
        self.targets: dict[str, TargetType] = {}

        self.refresh_due = True
        """Topics may have changed since the metadata hash was last compared."""
        self.refreshed_epoch = 0
        """The group epoch that the last comparison led to; while the group's is smaller, it was not written."""
        self.steady: dict[str, Steady] = {}
        """By member."""
        self.session_at_ms: dict[str, int] = {}
        """When the sessions of members end. A steady heartbeat moves this alone; the timer, which may be earlier, is
        set again when it comes."""

        self.members_version = 0
        """Grows when a member comes or goes."""
        self.target_job: TargetJob | None = None
        """The target that is being computed outside the event loop."""
        self.target_drop_count = 0
        """How many in a row were dropped."""
        self.target_retry_at_ms = 0
        """Before that no other is begun."""
        self._withheld: dict[str, TargetType] = {}
        """Old targets of members whose new ones are in the log, while that has not got all of them."""

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_delete(self) -> None:
        if self.members:
            raise Reject(ErrorCode.NON_EMPTY_GROUP)

    def check_room(self, member_id: str, size_max: int) -> None:
        """Reject a member that would be one too many."""
        if len(self.members) >= size_max and member_id not in self.members:
            raise Reject(ErrorCode.GROUP_MAX_SIZE_REACHED, f"Group {self.group_id} is full with {size_max} members.")

    def member(self, member_id: str) -> MemberType:
        member = self.members.get(member_id)
        if member is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {self.group_id} has no member {member_id}.")
        return member

    def target(self, member_id: str) -> TargetType:
        """What a member is to have. `targets` may be ahead of it: see `withhold`."""
        if member_id in self._withheld:
            return self._withheld[member_id]
        return self.targets.get(member_id, self._readers.no_target)

    def withhold(self, member_ids: Iterable[str]) -> None:
        """New targets of these members are about to be replayed, and not all of the group's: until the assignment
        epoch follows, members are told the old ones."""
        for member_id in member_ids:
            self._withheld.setdefault(member_id, self.target(member_id))

    def settings(self, world: World) -> SettingsType:
        if self._settings is None or self._settings.version != world.settings_version:
            self._settings = self._readers.settings(world, self.group_id)
        return self._settings

    def subscribed_topics(self) -> frozenset[str]:
        """The topics whose changes the group must look at."""
        raise NotImplementedError

    def hard_state(self) -> Any:  # noqa: ANN401
        """What its records say, as plain values."""
        raise NotImplementedError

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
            "targets": {member_id: dict(cast("Target", target)) for member_id, target in self.targets.items()},
        }

    def changed(self) -> None:
        """Something has changed, or is about to, that the answer to a heartbeat may depend on."""
        self.steady.clear()

    # --- replay: a key, and a value or None for a tombstone -----------------------------------------------------------

    def replay_group(self, key: Any, value: Any) -> None:  # noqa: ANN401
        """Never a tombstone: that removes the group."""
        self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def replay_target_epoch(self, key: Any, value: Any) -> None:  # noqa: ANN401
        self._withheld.clear()
        if value is None:
            self.assignment_epoch, self.assigned_at_ms = NO_TARGET_EPOCH, 0
        else:
            self.assignment_epoch, self.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp

    def replay_target(self, key: Any, value: Any) -> None:  # noqa: ANN401
        if value is None:
            self._withheld.pop(key.member_id, None)
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = self._readers.target(value)

    def replay_member(self, key: Any, value: Any) -> None:  # noqa: ANN401
        if value is None:
            self.remove_member(key.member_id)
        else:
            self.change_member(key.member_id, lambda member: self._readers.with_metadata(member, value))

    def replay_current(self, key: Any, value: Any) -> None:  # noqa: ANN401
        if value is not None:
            self.change_member(key.member_id, lambda member: self._readers.with_current(member, value))
        elif key.member_id in self.members:
            self.change_member(key.member_id, lambda member: member.released())

    def change_member(self, member_id: str, change: Callable[[MemberType], MemberType]) -> None:
        """Put a member in, or another in its place."""
        old = self.members.get(member_id)
        new = self.members[member_id] = change(old or self._readers.new_member(member_id))
        self.members_version += old is None
        self._member_changed(old, new)

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is not None:
            self.members_version += 1
            self._member_changed(old, None)
            self.session_at_ms.pop(member_id, None)

    def _member_changed(self, old: MemberType | None, new: MemberType | None) -> None:
        """What a kind of group derives from its members follows. None stands for no member."""


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
