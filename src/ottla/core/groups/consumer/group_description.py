"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember
from ottla.core.groups.consumer.targets import assignor_of
from ottla.core.groups.topic_sets import named
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponseAssignment as Assignment,
)
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponseDescribedGroup as DescribedGroup,
)
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponseMember as DescribedMember,
)
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponseTopicPartitions as TopicPartitions,
)

__all__ = ["DescribeConsumerGroup", "describe"]

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


class DescribeConsumerGroup(NamedTuple):
    """A request of our own: one group of a ConsumerGroupDescribe, which is answered with its DescribedGroup."""

    group_id: str


def describe(group: ConsumerGroup, context: Context) -> DescribedGroup:
    topics = context.world.topics
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of(group.assignors, group.settings(context.world).assignors),
        members=tuple(_member(group, group.members[member_id], topics) for member_id in sorted(group.members)),
    )


def _member(group: ConsumerGroup, member: ConsumerGroupMember, topics: Topics) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscription.names)),
        subscribed_topic_regex=member.subscription.regex,
        assignment=_assignment(_held(member), topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _held(member: ConsumerGroupMember) -> dict[bytes, list[int]]:
    """What it has, with what it has yet to give up (as 4.3 shows it)."""
    held: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, []).extend(epochs)
    return held


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: Topics) -> Assignment:
    return Assignment(
        tuple(
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(partitions[topic_id])))
            for name, topic_id in named(partitions, topics)
        )
    )
