"""A classic group as DescribeGroups shows it."""

from __future__ import annotations

from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember
from ottla.core.groups.classic.states import GroupState
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_groups import (
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)

__all__ = ["describe", "describe_dead"]


def describe(group: ClassicGroup) -> DescribeGroupsResponseDescribedGroup:
    """Which protocol is used, and what members say for it, counts only once the group is stable."""
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribeGroupsResponseDescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        protocol_type=group.protocol_type,
        protocol_data=protocol_name or "",
        members=tuple(_describe_member(each, protocol_name) for each in group.members.values()),
    )


def _describe_member(
    member: ClassicGroupMember, protocol_name: str | None
) -> DescribeGroupsResponseDescribedGroupMember:
    return DescribeGroupsResponseDescribedGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        b"" if protocol_name is None else member.metadata(protocol_name),
        member.assignment,
    )


def describe_dead(
    group_id: str, code: ErrorCode = ErrorCode.NONE, message: str | None = None
) -> DescribeGroupsResponseDescribedGroup:
    """What is said of a group that is not there."""
    return DescribeGroupsResponseDescribedGroup(code, message, group_id, "Dead")
