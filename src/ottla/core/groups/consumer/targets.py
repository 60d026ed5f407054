"""A new target: what the assignor is asked, and the records of what its answer changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.assignors import ASSIGNORS, MemberSpec, Target
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember, Subscription
from ottla.core.groups.consumer.records import target_epoch_record, target_record
from ottla.core.groups.topic_sets import TopicSets
from ottla.wire.keyed import KeyedRecord

__all__ = ["NewTarget", "assignor_of", "compute_target"]


class NewTarget(NamedTuple):
    records: Sequence[KeyedRecord]
    targets: Mapping[str, Target]


def assignor_of(assignors: Counter[str], available: Sequence[str]) -> str:
    """The one that most members name; among equals, and if nobody names any, the one that is configured first."""
    return max(available, key=lambda name: assignors[name])


def compute_target(
    group: ConsumerGroup,
    group_epoch: int,
    updated: ConsumerGroupMember,
    replaced_id: str | None,
    available: Sequence[str],
    topic_sets: TopicSets,
    context: Context,
) -> NewTarget:
    """The target of all members. `updated` is as it will be, and stands in for `replaced_id`, the static member whose
    place it takes, if there is one."""
    members = {**group.members, updated.member_id: updated}
    if replaced_id is not None:
        members.pop(replaced_id, None)
    specs, counts = _specs(group, members, updated.member_id, replaced_id, topic_sets, context.world.topics)
    targets = ASSIGNORS[_assignor(members.values(), available)](specs, counts)
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if target != group.targets.get(member_id)
    ]
    return NewTarget([*records, target_epoch_record(group.group_id, group_epoch, context.wall_ms)], targets)


def _assignor(members: Iterable[ConsumerGroupMember], available: Sequence[str]) -> str:
    return assignor_of(Counter(member.server_assignor for member in members if member.server_assignor), available)


def _specs(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerGroupMember],
    updated_id: str,
    replaced_id: str | None,
    topic_sets: TopicSets,
    topics: Topics,
) -> tuple[list[MemberSpec], dict[bytes, int]]:
    """Members in the order of their ids, and the partition counts of what they subscribe to."""
    counts: dict[bytes, int] = {}
    topic_ids: dict[Subscription, frozenset[bytes]] = {}
    specs = []
    for member_id in sorted(members):
        member = members[member_id]
        if member.subscription not in topic_ids:
            existing = topic_sets.existing(group.topics_of(member.subscription), topics)
            topic_ids[member.subscription] = existing.topic_ids
            counts.update(existing.partition_counts)
        old_id = replaced_id if replaced_id is not None and member_id == updated_id else member_id
        specs.append(MemberSpec(member_id, member.instance_id, topic_ids[member.subscription], group.target(old_id)))
    return specs, counts
