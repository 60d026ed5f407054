"""A member: one stream thread. What it has told of itself, and how far it has come towards its target."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ottla.core.groups.modern.members import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.streams.tasks import NOTHING_HELD, Held, Task
from ottla.wire.types.group_streams import StreamsGroupMemberMetadataValue as Metadata

__all__ = ["NEW_MEMBER", "Current", "MemberState", "Metadata", "Offsets", "Report", "StreamsGroupMember"]

Offsets = Mapping[Task, int]


class Report(NamedTuple):
    """What a member has said of the state that it has."""

    is_made: bool | None = None
    """Whether it reports at all; None if it has not joined since the coordinator took over, so that it may still."""
    offsets: Offsets = MappingProxyType({})
    ends: Offsets = MappingProxyType({})


class MemberState(IntEnum):
    STABLE = 1
    """Has what the target of its epoch gives it."""
    UNREVOKED_TASKS = 2
    """Must give up tasks before its epoch advances."""
    UNRELEASED_TASKS = 3
    """Is at the target's epoch, but waits for tasks that others still have."""
    UNKNOWN = 127
    """Written by a coordinator that is newer than this one."""


class Current(NamedTuple):
    """How far a member has come."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    """Its own before the last change, for answers that were lost."""
    state: MemberState = MemberState.STABLE
    assigned: Held = NOTHING_HELD
    pending: Held = NOTHING_HELD
    """Taken away, but not given up yet as far as we know."""

    def at(self, member_epoch: int, state: MemberState, assigned: Held, pending: Held = NOTHING_HELD) -> Current:
        return Current(member_epoch, self.member_epoch, state, assigned, pending)


NEW_MEMBER: Final = Current()
NEW_METADATA: Final = Metadata(instance_id=None, rack_id=None, topology_epoch=-1)


class StreamsGroupMember(msgspec.Struct):
    """Soft: `report`, and `may_not_have_heard`: the last request was one whose answer had been sent before, so it is
    open which of the answers came through."""

    member_id: str
    metadata: Metadata = NEW_METADATA
    current: Current = NEW_MEMBER
    report: Report = Report()
    may_not_have_heard: bool = False

    @property
    def must_revoke(self) -> bool:
        has_left = self.current.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
        return self.current.state is MemberState.UNREVOKED_TASKS and not has_left

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.current.state is MemberState.STABLE and self.current.member_epoch == assignment_epoch

    def released(self) -> StreamsGroupMember:
        epoch = LEAVE_GROUP_MEMBER_EPOCH
        current = self.current._replace(
            member_epoch=epoch, previous_member_epoch=epoch, assigned=NOTHING_HELD, pending=NOTHING_HELD
        )
        return replace(self, current=current)
