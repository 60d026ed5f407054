"""From a consumer group to a classic group, when no member of the new protocol is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.assignors import Target
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember, Protocol, Terms
from ottla.core.groups.classic.subscriptions import version_of
from ottla.core.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember
from ottla.core.groups.migration.policy import may_downgrade
from ottla.core.groups.migration.subscriptions import encode_assignment

__all__ = ["classic_group", "is_downgrade_due"]


def is_downgrade_due(
    group: ConsumerGroup, gone: Collection[ConsumerGroupMember], come_count: int, context: Context
) -> bool:
    """Whether only members of the classic protocol are left when some have gone, and some of that protocol come."""
    left = len(group.members) - len(gone)
    classic_left = group.classic_count - sum(member.uses_classic_protocol for member in gone)
    if classic_left != left or left + come_count == 0:
        return False
    size_max = context.world.settings["group.max.size"]
    return may_downgrade(context.world) and left + come_count <= size_max


def classic_group(
    group: ConsumerGroup, members: Iterable[ConsumerGroupMember], target: Callable[[str], Target], context: Context
) -> ClassicGroup:
    """The group as a classic one: its epoch becomes the generation, and its target what members are assigned. `target`
    gives it by member id."""
    classic = [_member(member) for member in members]
    made = ClassicGroup.of_members(group.group_id, group.group_epoch, PROTOCOL_TYPE, classic, context.wall_ms)
    for member in classic:
        member.assignment = _assignment(
            target(member.member_id), member.metadata(made.protocol_name), context.world.topics
        )
    return made


def _member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
    protocols = tuple(Protocol(each.name, each.metadata) for each in member.classic.supported_protocols)
    terms = Terms(member.rebalance_timeout_ms, member.classic.session_timeout_ms, protocols)
    return ClassicGroupMember(member.member_id, member.instance_id, member.client_id, member.client_host, terms)


def _assignment(target: Target, metadata: bytes, topics: Topics) -> bytes:
    return encode_assignment(target, topics, version_of(metadata) or 0)
