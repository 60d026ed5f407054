"""A new target: what the assignor is asked, and the records of what its answer changes.

`compute_target` computes it at once. That of a large group, or of an assignor of one's own, is computed outside the
event loop (`is_computed_outside`): then it is a job, for which `TARGET_SOURCE` gathers the same in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.core.coordinator.contract import Context, Topic, Topics
from ottla.core.groups.assignors import ASSIGNORS, MemberSpec, Target
from ottla.core.groups.assignors.computation import Choice, TopicInput
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember, Subscription
from ottla.core.groups.consumer.records import target_epoch_record, target_record
from ottla.core.groups.modern.target_jobs import TargetSource
from ottla.core.groups.modern.target_parts import GatheredMember, gather
from ottla.core.groups.topic_sets import TopicSets
from ottla.wire.keyed import KeyedRecord

__all__ = ["TARGET_SOURCE", "NewTarget", "assignor_of", "compute_target", "is_computed_outside"]


class NewTarget(NamedTuple):
    records: Sequence[KeyedRecord]
    targets: Mapping[str, Target]


def assignor_of(assignors: Counter[str], available: Sequence[str]) -> str:
    """The one that most members name; among equals, and if nobody names any, the one that is configured first."""
    return max(available, key=lambda name: assignors[name])


# --- at once ----------------------------------------------------------------------------------------------------------


def compute_target(
    group: ConsumerGroup,
    group_epoch: int,
    updated: ConsumerGroupMember,
    replaced_id: str | None,
    topic_sets: TopicSets,
    context: Context,
) -> NewTarget:
    """The target of all members. `updated` is as it will be, and stands in for `replaced_id`, the static member whose
    place it takes, if there is one."""
    members = _members(group, updated, replaced_id)
    specs, counts = _specs(group, members, updated.member_id, replaced_id, topic_sets, context.world.topics)
    available = group.settings(context.world).assignors
    targets = ASSIGNORS[_assignor(members.values(), available)](specs, counts)
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if target != group.targets.get(member_id)
    ]
    return NewTarget([*records, target_epoch_record(group.group_id, group_epoch, context.wall_ms)], targets)


def _members(
    group: ConsumerGroup, updated: ConsumerGroupMember, replaced_id: str | None
) -> Mapping[str, ConsumerGroupMember]:
    """As they will be."""
    members = {**group.members, updated.member_id: updated}
    if replaced_id is not None:
        members.pop(replaced_id, None)
    return members


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


# --- outside the event loop -------------------------------------------------------------------------------------------


def is_computed_outside(
    group: ConsumerGroup,
    updated: ConsumerGroupMember,
    replaced_id: str | None,
    topic_sets: TopicSets,
    context: Context,
) -> bool:
    """Whether the target is large, or an assignor of one's own is to be asked for it. `updated` and `replaced_id` are
    those of `compute_target`."""
    if group.target_job is not None:
        return True
    settings = group.settings(context.world)
    if settings.own_assignors:
        name = _assignor(_members(group, updated, replaced_id).values(), settings.assignors)
        if name in settings.own_assignors:
            return True
    return _is_large(group, updated, topic_sets, context)


def _is_large(group: ConsumerGroup, updated: ConsumerGroupMember, topic_sets: TopicSets, context: Context) -> bool:
    """Counts no further than needed: that a group is large is to be found out quickly."""
    left = context.world.inline_target_max - len(group.members)
    subscriptions = {*group.subscriptions.counts, updated.subscription}
    for subscription in subscriptions:
        left -= len(group.topics_of(subscription))
        if left < 0:
            return True
    for subscription in subscriptions:
        existing = topic_sets.existing(group.topics_of(subscription), context.world.topics)
        left -= sum(existing.partition_counts.values())
        if left < 0:
            return True
    return False


def _choose(group: ConsumerGroup, context: Context) -> Choice:
    settings = group.settings(context.world)
    name = assignor_of(group.assignors, settings.assignors)
    own = settings.own_assignors.get(name)
    return Choice(name) if own is None else Choice(own, is_own=True)


def _parts(group: ConsumerGroup, choice: Choice, context: Context) -> Iterator[bytes]:
    describe = _described if choice.is_own else _counted
    return gather(group.subscribed_topics(), _gathered(group), context.world.topics, describe)


def _counted(topic: Topic) -> TopicInput:
    return (topic.topic_id, topic.partition_count, "", ())


def _described(topic: Topic) -> TopicInput:
    racks = tuple(tuple(sorted(topic.racks(partition))) for partition in range(topic.partition_count))
    return (topic.topic_id, topic.partition_count, topic.name, racks)


def _gathered(group: ConsumerGroup) -> Iterator[GatheredMember]:
    """Members in the order of their ids. One that leaves meanwhile is gathered all the same, or left out."""
    names: dict[Subscription, frozenset[str]] = {}
    for member_id in sorted(group.members):
        member = group.members.get(member_id)
        if member is None:
            continue
        if member.subscription not in names:
            names[member.subscription] = group.topics_of(member.subscription)
        target = group.targets.get(member_id)
        yield GatheredMember(member_id, member.instance_id, member.rack_id, names[member.subscription], target)


TARGET_SOURCE: Final[TargetSource[ConsumerGroup]] = TargetSource(_choose, _parts, target_record, target_epoch_record)
